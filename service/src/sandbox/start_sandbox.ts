import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { DamagedChainFile, type Devnet, loadNetworks, SurfpoolSilent } from '@cambist/devnet'
import { CommandRefused } from '../command_refused.ts'
import type { Roles, Service } from '../wiring/roles.ts'
import type { DemoAccount } from './demo_account.ts'
import { awaitLooks } from './first_looks.ts'
import { fundReserves } from './fund_reserves.ts'
import { type Ground, type GroundOptions, type OwnFolder, startGround } from './ground.ts'
import { writeJson } from './json_file.ts'
import { openMarker } from './marker.ts'
import { ownFolder, refuseForeignFolder } from './own_folder.ts'
import { linkingTo, onlyRoles, type PartsOptions, serviceParts } from './parts.ts'

export type Sandbox = {
  readonly service: Service
  readonly devnet: Devnet
  readonly account: DemoAccount
  readonly databaseUrl: string
  readonly sandboxFile: string
  /** One more process of the same service, as far as the database can tell, on the same chains, clock and prices. */
  startAnother(roles: readonly (keyof Roles)[]): Promise<Service>
  stop(): Promise<void>
}

export type SandboxOptions = GroundOptions & PartsOptions

/** Brings up everything a stranger needs to try an exchange: database, chains, service, reserves, an account. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const dataDir = resolve(options.config.dataDir)
  await mkdir(dataDir, { recursive: true })
  await refuseForeignFolder(dataDir)
  const lock = ownFolder(dataDir)
  try {
    // First, so that it is known as a sandbox's, however little of it there is.
    const marker = await openMarker(dataDir)
    const sandbox = await startOwned(options, { dataDir, marker })
    return {
      ...sandbox,
      stop: () => sandbox.stop().finally(() => lock.release()),
    }
  } catch (error) {
    lock.release()
    if (error instanceof DamagedChainFile)
      throw new CommandRefused(
        `${error.message}. \`npm start -- --reset\` deletes what the sandbox keeps and begins anew.`,
        { cause: error },
      )
    if (error instanceof SurfpoolSilent)
      throw new CommandRefused(`${error.message} Try it again.`, { cause: error })
    throw error
  }
}

async function startOwned(options: SandboxOptions, folder: OwnFolder): Promise<Sandbox> {
  const { dataDir } = folder
  const sandboxFile = join(dataDir, 'sandbox.json')
  // The file says that the sandbox is ready, so one of an earlier life must not be there meanwhile.
  await rm(sandboxFile, { force: true })
  const { signal = new AbortController().signal, say = () => {} } = options
  const { ground, startService } = await loadMeanwhile(options.networks, (whenWaiting) =>
    startGround(options, folder, whenWaiting),
  )
  let service: Service | undefined
  try {
    signal.throwIfAborted()
    const { account } = ground
    const parts = await serviceParts(options, ground, dataDir)
    signal.throwIfAborted()
    const startedWallMs = parts.clock.wallMs()
    const started = await startService(parts)
    service = started
    const waiting = { clock: parts.clock, signal, say }
    await fundReserves(started.world, ground.devnet, waiting)
    await awaitLooks(started.world, startedWallMs, waiting)
    await started.world.market.refresh()
    signal.throwIfAborted()
    await writeJson(sandboxFile, describe(started, ground))
    return {
      service: started,
      devnet: ground.devnet,
      account,
      databaseUrl: ground.databaseUrl,
      sandboxFile,
      startAnother: (names) =>
        startService({
          ...parts,
          roles: linkingTo(started.baseUrl, onlyRoles(parts.roles, names)),
          http: { ...parts.http, port: 0 },
        }),
      stop: async () => {
        await rm(sandboxFile, { force: true })
        await stopBoth(started, ground)
      },
    }
  } catch (error) {
    await stopBoth(service, ground)
    throw error
  }
}

/** The service is half of what there is to load: that is done while a new database is being made. */
async function loadMeanwhile(
  networks: GroundOptions['networks'],
  start: (whenWaiting: () => void) => Promise<Ground>,
) {
  let starting: Promise<Ground> | undefined
  const waiting = new Promise<void>((resolve) => {
    starting = start(resolve)
  })
  await Promise.race([waiting, starting])
  await loadNetworks(networks)
  const { loadRoles, startService } = await import('../main.ts')
  await loadRoles()
  return { ground: (await starting) as Ground, startService }
}

/** Whatever becomes of the service's end, nothing below it is left running. */
async function stopBoth(service: Service | undefined, ground: Ground): Promise<void> {
  try {
    await service?.stop()
  } finally {
    await ground.stop()
  }
}

function describe({ baseUrl }: Service, { devnet, databaseUrl, account }: Ground): object {
  return {
    base_url: baseUrl,
    ...account,
    networks: devnet.networks,
    database_url: databaseUrl,
    mailbox_url: `${baseUrl}/sandbox/mailbox`,
    smtp_url: devnet.mailbox.smtpUrl,
  }
}
