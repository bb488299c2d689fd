import type { Database, Sql } from '../../src/db/database.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { memoryStore } from '../../src/signer/testing/memory_store.ts'
import { simulatedSignerSettings } from './chains/signer_settings.ts'
import type { NodeLines, SimulatedNodes } from './chains/simulated_chains.ts'
import { START_MS, sealKey } from './ground.ts'
import type { Flaw } from './play.ts'

/** Engines that do not keep their promises, each for one reason. A simulation that they pass shows nothing. */
export const flaws = {
  'locks no rows': {
    database: (db) =>
      rewriting(db, (text) => text.replaceAll(/FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?/g, '')),
  },
  'believes in its lease for ever': {
    database: (db) =>
      answering(db, (text) => (text.startsWith('SELECT 1 AS one FROM leases') ? [{ one: 1 }] : null)),
  },
  'credits two blocks early': {
    database: (db) =>
      rewriting(db, (text) =>
        text.includes("d.state = 'mined' AND d.block_height <= $2")
          ? text.replace('<= $2 + 1', '<= $2 + 3')
          : text,
      ),
  },
  'forgets what it signed and sends it at once': { signer: hastySigner },
  'takes what was dropped for sent': { lines: droppingLines },
} as const satisfies Record<string, Flaw>

function rewriting(db: Database, rewrite: (text: string) => string): Database {
  const over = (sql: Sql): Sql => ({ query: (text, values) => sql.query(rewrite(text), values) })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

function answering(db: Database, answer: (text: string) => object[] | null): Database {
  const over = (sql: Sql): Sql => ({
    query: async (text, values) => (answer(text.trim()) as never) ?? (await sql.query(text, values)),
  })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

/** Asked again, it signs anew with the next nonce; what it signs is out before anybody has stored it. */
function hastySigner(signer: Signer, nodes: () => SimulatedNodes): Signer {
  let signed = 0
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
      if (intent.family === 'bitcoin' || authority.kind !== 'payout') return signer.sign(intent, authority)
      const answer = await fresh.sign({ ...intent, nonce: intent.nonce + signed, attempt: 1 }, authority)
      signed += 1
      if (answer.ok) await nodes().ETH.send(answer.value.bytes)
      // The way back, on which an answer may be lost.
      await signer.addresses('evm', 'reserve', 0, 1)
      return answer
    },
  }
}

function droppingLines(lines: NodeLines): NodeLines {
  return {
    ...lines,
    ETH: (name, ...asked) =>
      name === 'send' ? (Promise.resolve('accepted') as never) : lines.ETH(name, ...asked),
  }
}
