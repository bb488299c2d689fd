import { createRequire } from 'node:module'

/** What is used of https://docs.surfpool.run: a real Solana virtual machine with all programs that the main network begins with. */
export type Surfnet = {
  readonly rpcUrl: string
  setAccount(address: string, lamports: number, data: readonly number[], owner: string): void
  /** What has happened since it was last asked. Somebody has to ask: when too much is kept, it stands still. */
  drainEvents(): unknown[]
  stop(): void
}

type Surfpool = {
  readonly Surfnet: {
    startWithConfig(config: { readonly offline: true; readonly blockProductionMode: 'manual' }): Surfnet
  }
}

/** Compiled for one kind of machine; npm installs it where it runs and leaves it out elsewhere. */
export const SURFPOOL_PACKAGE = '@solana/surfpool-linux-x64-gnu'

/** Null: it is not installed, or does not run here. */
export function loadSurfpool(name: string = SURFPOOL_PACKAGE): Surfpool | null {
  try {
    return createRequire(import.meta.url)(name) as Surfpool
  } catch {
    return null
  }
}
