import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { createSecretBox } from './accounts/secret_box.ts'
import { findUnopenable } from './accounts/unopenable_secrets.ts'
import { buildChains } from './chains/index.ts'
import { type ChainSettings, tokensOf } from './config/chain_settings.ts'
import { reserveAddresses } from './db/addresses.ts'
import type { Database } from './db/database.ts'
import { chainFacts, chainIds } from './domain/catalog/networks.ts'
import { openAlarms } from './engine/alarms.ts'
import { marketBoard } from './engine/market.ts'
import { startNotifying } from './engine/notify/run.ts'
import { startEngine, startMarket, startWatching } from './engine/run.ts'
import type { Chains, World } from './engine/world.ts'
import { openServer } from './wiring/api_role.ts'
import { bringSchema, openPool } from './wiring/databases.ts'
import { openMails, openWebhooks } from './wiring/notifier_role.ts'
import { nothingOpened, type Opened } from './wiring/opened.ts'
import { sealWith } from './wiring/order_keys.ts'
import { refuseOtherSealKey } from './wiring/own_seal_key.ts'
import { decidesOrders, rolesOf, type Service, type ServiceOptions } from './wiring/roles.ts'
import { openSigner, openSignerRecord, reachSigner } from './wiring/signer_role.ts'

/**
 * What belongs to one role is loaded by the processes that have it: routes and schemas, signing, mail. Whoever has all
 * roles and time to spare before they start loads it here.
 */
export async function loadRoles(): Promise<void> {
  await import('./http/server.ts')
  await import('./signer/local_signer.ts')
  await import('./channels/email/smtp.ts')
}

/** Starts what the roles ask for, or nothing at all: what was opened before a failure is closed again. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const opened = nothingOpened()
  try {
    const service = await openService(options, opened)
    options.logger.info(describe(options, service), 'the service is up')
    return {
      ...service,
      stop: async () => {
        await opened.closeAll()
        options.logger.info({}, 'the service has stopped')
      },
    }
  } catch (error) {
    // Why it did not start says more than what then did not close.
    await opened.closeAll().catch((failure: unknown) => {
      options.logger.warn({ err: failure }, 'what was opened did not close')
    })
    throw error
  }
}

/** Puts everything together, top to bottom. What is opened last is closed first: nobody is served by half a service. */
async function openService(options: ServiceOptions, opened: Opened): Promise<Omit<Service, 'stop'>> {
  const { roles, prices } = options
  await bringSchema(options, options.databaseUrl, 'DATABASE_URL')
  const db = openPool(options, options.databaseUrl, options.databaseConnections)
  opened.closeWith(db.close)
  const sealKey = (roles.api ?? roles.engine ?? roles.signer)?.orderSeal
  if (sealKey !== undefined) await refuseOtherSealKey(db, sealKey)
  const world = await openWorld(options, db)
  await warnOfUnopenable(options, db)

  if (decidesOrders(roles)) {
    prices.start()
    opened.closeWith(() => prices.stop())
    await world.market.refresh()
    opened.closeWith(startMarket(world).stop)
  }
  const record = roles.signer === null ? db : await openSignerRecord(options, roles.signer, db, opened)
  const signer =
    roles.signer === null ? null : await openSigner(options, roles.signer, { db, record }, opened)
  const holder = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`
  if (roles.watcher) closeTogether(opened, startWatching(world, holder))
  if (roles.engine !== null) {
    const { orderSeal, signerSocket } = roles.engine
    const seal = sealWith(orderSeal)
    const signingWorld = { ...world, seal, signer: signer ?? reachSigner(signerSocket, opened) }
    closeTogether(opened, startEngine(signingWorld, holder))
  }
  const reached = await openServer(options, world, record, opened)
  // Last: mails link to where the service is reached, which is known only now.
  if (roles.notifier !== null) {
    const mails = await openMails(options, roles.notifier.mail, world, reached.baseUrl)
    const webhooks = await openWebhooks(options, world, roles.notifier)
    // A slow mail server keeps a process up for seconds: nobody is served by it meanwhile.
    const server = { stop: reached.close }
    closeTogether(opened, [server, ...startNotifying({ ...world, mails, webhooks })])
  }
  return { world, baseUrl: reached.baseUrl, origin: reached.origin }
}

/** An account key that was dropped too early is put back by whoever hears of it before customers do. */
async function warnOfUnopenable({ roles, clock, logger }: ServiceOptions, db: Database): Promise<void> {
  const accountKeys = (roles.api ?? roles.notifier)?.accountKeys
  if (accountKeys === undefined) return
  const box = createSecretBox(accountKeys)
  for (const unopenable of await findUnopenable({ db, box, wallMs: clock.wallMs })) {
    logger.warn(
      unopenable,
      'secrets were sealed with an account key that is not configured, and do not open: put it back into CAMBIST_ACCOUNT_KEY_FILE, below the first line',
    )
  }
}

async function openWorld(
  { clock, prices, policy, logger, ...options }: ServiceOptions,
  db: Database,
): Promise<World> {
  const chains = await connectChains(options.chains, db)
  const assets = new Set([...chains.values()].flatMap((chain) => chain.assets))
  const { ETH, BNB } = options.chains
  return {
    db,
    clock,
    chains,
    prices,
    market: marketBoard({ db, clock, prices, policy, assets }),
    policy,
    log: logger,
    alarms: openAlarms(),
    tokens: tokensOf(options.chains),
    evmChainIds: { ETH: ETH.evmChainId, BNB: BNB.evmChainId },
  }
}

/** The chains that have a node, paying from the reserve addresses that the signer told. */
export function connectChains(settings: ChainSettings, db: Database): Promise<Chains> {
  return buildChains(settings, async (id) => {
    const [address] = await reserveAddresses(db, chainFacts[id].family)
    if (address === undefined) throw new Error(`the signer has not told the reserve address of ${id} yet`)
    return address
  })
}

/** Loops end when their step does: asked all at once, they take as long as the slowest. */
function closeTogether(opened: Opened, running: readonly { stop(): Promise<void> }[]): void {
  opened.closeWith(async () => {
    const ends = await Promise.allSettled(running.map((one) => one.stop()))
    // What the others still need is closed only when all have ended.
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  })
}

function describe({ roles }: ServiceOptions, { world, origin }: Omit<Service, 'stop'>): object {
  const chains = [...world.chains.keys()]
  return {
    roles: rolesOf(roles),
    listens: origin,
    chains,
    chainsWithoutNode: chainIds.filter((id) => !chains.includes(id)),
  }
}
