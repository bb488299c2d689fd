import { join } from 'node:path'
import {
  type Devnet,
  type DevnetOptions,
  type PostgresOptions,
  startDevnet,
  startPostgres,
} from '@cambist/devnet'
import { createSecretBox } from '../accounts/secret_box.ts'
import { systemClock } from '../clock.ts'
import type { SandboxConfig } from '../config/sandbox_config.ts'
import { sandboxKey } from '../config/sandbox_secrets.ts'
import { openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { nameOfSchema } from '../db/migrations_done.ts'
import { type DemoAccount, openDemoAccount } from './demo_account.ts'
import { markDatabase, notOf, refuseForeignDatabase } from './marker.ts'
import { readSettings, type SandboxSettings } from './settings.ts'

/** What the chains and the database of a sandbox may differ in. */
export type GroundOptions = {
  readonly config: SandboxConfig
  /** One line for a person who waits. */
  readonly say?: (line: string) => void
  /** Tests mine by hand. */
  readonly mining?: 'lively' | 'manual'
  /** Which local chains run; left out, all. What has none is listed with `enabled: false`. */
  readonly networks?: DevnetOptions['networks']
  /** For the sandbox's own database, on top of what it has: a test that never cuts the power need not wait for the disk. */
  readonly postgresSettings?: Readonly<Record<string, string>>
  /** False: the EVM chains are not written down, and are forgotten when it stops. */
  readonly isLasting?: boolean
  /** Aborted: the start is given up, what did start is stopped, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** A folder of a sandbox, and what it has in common with its database. */
export type OwnFolder = { readonly dataDir: string; readonly marker: string }

/** What stands below the service, and outlives it when it is killed. */
export type Ground = Prepared & { readonly devnet: Devnet; stop(): Promise<void> }

/** A database with the present schema, and what an earlier start left in it. */
type Prepared = {
  readonly databaseUrl: string
  readonly account: DemoAccount
  readonly settings: SandboxSettings
}

/** Starts chains and database, or nothing at all. `whenWaiting` is called when there is nothing to do here for a while. */
export async function startGround(
  { config, mining, networks, postgresSettings, isLasting = true, say = () => {}, signal }: GroundOptions,
  folder: OwnFolder,
  whenWaiting: () => void,
): Promise<Ground> {
  // Somebody else looks after it. Whether it may be used is known before anything in it is changed, or ten nodes are started.
  if (config.databaseUrl !== null) {
    await refuseForeignDatabase(config.databaseUrl, folder.dataDir, folder.marker)
  }
  const [devnet, database] = await Promise.allSettled([
    startDevnet({
      dataDir: join(folder.dataDir, 'devnet'),
      mining: mining ?? 'lively',
      isLasting,
      log: say,
      signal,
      ...(networks !== undefined && { networks }),
    }),
    startDatabase(config, folder, {
      say,
      onWaiting: whenWaiting,
      ...(postgresSettings && { settings: postgresSettings }),
    }),
  ])
  if (devnet.status === 'fulfilled' && database.status === 'fulfilled') {
    return {
      ...database.value,
      devnet: devnet.value,
      stop: () => devnet.value.stop().finally(database.value.stop),
    }
  }
  // Half a ground is none: what did start is stopped, and the first failure is told.
  for (const half of [devnet, database])
    if (half.status === 'fulfilled') await half.value.stop().catch(() => {})
  throw devnet.status === 'rejected' ? devnet.reason : (database as PromiseRejectedResult).reason
}

async function startDatabase(
  { databaseUrl }: SandboxConfig,
  { dataDir, marker }: OwnFolder,
  {
    say,
    ...options
  }: Pick<PostgresOptions, 'onWaiting' | 'settings'> & { readonly say: (line: string) => void },
): Promise<Prepared & { stop(): Promise<void> }> {
  const isOwn = databaseUrl === null
  const database = isOwn
    ? await startPostgres({ dataDir: join(dataDir, 'postgres'), template: nameOfSchema, ...options })
    : { url: databaseUrl, stop: async () => {} }
  try {
    // Its own is nobody else's, and begins with everything.
    await migrate(database.url, isOwn ? () => {} : say)
    return { ...(await markAndRead(dataDir, database.url, { marker, isOwn })), stop: database.stop }
  } catch (error) {
    await database.stop()
    throw error
  }
}

async function markAndRead(
  dataDir: string,
  databaseUrl: string,
  { marker, isOwn }: { readonly marker: string; readonly isOwn: boolean },
): Promise<Prepared> {
  const db = openDatabase({
    url: databaseUrl,
    connectionsMax: 2,
    applicationName: 'cambist sandbox start',
    onConnectionLost: () => {},
  })
  try {
    // Before anything else: another sandbox may have come first since it was asked. What lies in the folder is the folder's.
    if ((await markDatabase(db, marker)) !== marker && !isOwn) throw notOf(dataDir)
    const box = createSecretBox([sandboxKey('account')])
    const account = await openDemoAccount(dataDir, { db, box, wallMs: systemClock().wallMs })
    return { databaseUrl, account, settings: await readSettings(db) }
  } finally {
    await db.close()
  }
}
