import type { BlockRef } from '../../src/chains/chain.ts'
import type { Database, Sql } from '../../src/db/database.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { memoryStore } from '../../src/signer/testing/memory_store.ts'
import { simulatedSignerSettings } from './chains/signer_settings.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import { START_MS, sealKey } from './ground.ts'
import type { Flaw } from './play.ts'

/** Engines that do not keep their promises, each for one reason. A simulation that they pass shows nothing. */
export const flaws = {
  'signs anew and sends before it stores': () => ({ signer: hastySigner }),
  'checks and acts without a lock': () => ({
    database: (db) =>
      rewriting(db, (text) => text.replaceAll(/FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?/g, '')),
  }),
  'pays without another look at the block': withoutLook,
  'credits a block early': () => ({
    database: (db) =>
      rewriting(db, (text) =>
        text.replace("'mined' AND d.block_height <= $2 + 1", "'mined' AND d.block_height <= $2 + 2"),
      ),
  }),
} as const satisfies Record<string, () => Flaw>

export type FlawName = keyof typeof flaws

function rewriting(db: Database, rewrite: (text: string) => string): Database {
  const over = (sql: Sql): Sql => ({ query: (text, values) => sql.query(rewrite(text), values) })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

/** What it signs is out before anybody has stored it; asked again, it signs anew with another nonce. */
function hastySigner(signer: Signer, nodes: () => SimulatedNodes): Signer {
  const signed = new Set<string>()
  return {
    addresses: (...asked) => signer.addresses(...asked),
    sign: async (intent, authority) => {
      const fresh = localSigner({
        seed: Buffer.alloc(64, 7),
        store: memoryStore(),
        sealKey,
        settings: simulatedSignerSettings,
        clock: { nowMs: () => START_MS },
      })
      if (intent.family !== 'evm' || authority.kind !== 'payout') return signer.sign(intent, authority)
      const nonce = intent.nonce + (signed.has(intent.payoutId) ? 1 : 0)
      const answer = await fresh.sign({ ...intent, nonce, attempt: 1 }, authority)
      signed.add(intent.payoutId)
      if (answer.ok) await nodes().ETH.send(answer.value.bytes)
      return answer
    },
  }
}

type DepositRow = {
  readonly tx_hash?: string
  readonly block_hash?: string | null
  readonly block_height?: number | null
}

/** Whatever is asked of a deposit's transaction, the answer is what the books say of it. */
function withoutLook(): Flaw {
  const blocks = new Map<string, BlockRef>()
  const remember = (rows: readonly DepositRow[]) => {
    for (const { tx_hash, block_hash, block_height } of rows) {
      if (tx_hash !== undefined && block_hash && block_height)
        blocks.set(tx_hash, { hash: block_hash, height: block_height })
    }
  }
  const over = (sql: Sql): Sql => ({
    query: async (text, values) => {
      const rows = await sql.query<never>(text, values)
      if (text.includes('FROM deposits')) remember(rows)
      return rows
    },
  })
  const believing = <Asked>(line: Asked): Asked =>
    (async (name: string, ...asked: unknown[]) => {
      const block = name === 'lookup' ? blocks.get(String(asked[0])) : undefined
      return block === undefined
        ? (line as never as (...all: unknown[]) => unknown)(name, ...asked)
        : { where: 'block', block }
    }) as never
  return {
    database: (db) => ({ ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }),
    lines: ({ BTC, ETH, BNB, XRP, TRX }) => ({
      BTC: believing(BTC),
      ETH: believing(ETH),
      BNB: believing(BNB),
      ...(XRP && { XRP: believing(XRP) }),
      ...(TRX && { TRX: believing(TRX) }),
    }),
  }
}
