import { expect, test } from 'vitest'
import type { BitcoinIntent, Coin } from '../../domain/payouts/intent.ts'
import { areExcluded, isUnspent } from './exclusion.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'
import { type Script, scriptedRpc } from './testing/scripted_rpc.ts'

/**
 * What: an attempt is called excluded only when what it needs was spent by something else that is deep in the chain.
 * How: a node on paper, which knows of blocks, of transactions and of what they spend, and nothing more.
 */
const CONFIRMATIONS = 3

type PaperTx = {
  /** Outpoints, `tx:n`; none: a coinbase. */
  readonly spends: readonly string[]
  /** The height of its block in the best chain, or where it waits, or the height of the block that lost it. */
  readonly at: number | 'mempool' | { readonly lost: number }
}

type Paper = Readonly<Record<string, PaperTx>>

const ABSENT = 'No such mempool or blockchain transaction. Use gettransaction for wallet transactions.'

/** Of what is mined above its best block it knows nothing. */
function nodeOf(paper: Paper, meddle: (method: string) => void = () => {}, tip = 10) {
  const txs = Object.entries(paper).filter(([, { at }]) => typeof at !== 'number' || at <= tip)
  const known = Object.fromEntries(txs)
  const minedAt = (height: number) => txs.filter(([, { at }]) => at === height)
  const spenders = (outpoint: string) =>
    txs.filter(([, { spends, at }]) => typeof at === 'number' && spends.includes(outpoint))
  const vinOf = ({ spends }: PaperTx) =>
    spends.length === 0
      ? [{ coinbase: '51' }]
      : spends.map((outpoint) => ({ txid: outpoint.split(':')[0], vout: Number(outpoint.split(':')[1]) }))
  const heightOf = (hash: unknown) => Number(String(hash).split(' ').at(-1))
  const script: Script = {
    getbestblockhash: () => `block ${tip}`,
    getblockheader: (hash) => ({
      height: heightOf(hash),
      confirmations: String(hash).startsWith('lost') ? -1 : tip + 1 - heightOf(hash),
    }),
    getrawtransaction: (txid) => {
      const tx = known[String(txid)]
      if (tx === undefined) throw new RpcRefusal('getrawtransaction', -5, ABSENT)
      const { at } = tx
      const common = { vin: vinOf(tx), fee: '0.00000141' }
      if (at === 'mempool') return common
      if (typeof at === 'number') return { ...common, blockhash: `block ${at}`, confirmations: tip + 1 - at }
      return { ...common, blockhash: `lost ${at.lost}`, confirmations: 0 }
    },
    gettxout: (txid, index, withMempool) => {
      expect(withMempool, 'what only waits has spent nothing').toBe(false)
      const isThere = typeof known[String(txid)]?.at === 'number'
      return isThere && spenders(`${txid}:${index}`).length === 0 ? { confirmations: 1 } : null
    },
    getblock: (hash) => {
      if (heightOf(hash) > tip) throw new RpcRefusal('getblock', -5, 'Block not found')
      return {
        tx: [{ vin: [{ coinbase: '51' }] }, ...minedAt(heightOf(hash)).map(([, tx]) => ({ vin: vinOf(tx) }))],
        previousblockhash: `block ${heightOf(hash) - 1}`,
      }
    },
  }
  const meddled = Object.entries(script).map(([method, say]): [string, Script[string]] => [
    method,
    (...params) => {
      meddle(method)
      return say(...params)
    },
  ])
  return scriptedRpc(Object.fromEntries(meddled))
}

function coin(outpoint: string): Coin {
  const [txHash = '', index = ''] = outpoint.split(':')
  return {
    txHash,
    index: Number(index),
    satoshi: 1_000n,
    address: 'us',
    key: { purpose: 'deposit', index: 1 },
  }
}

function attempt(...spends: readonly string[]): BitcoinIntent {
  return {
    family: 'bitcoin',
    chain: 'BTC',
    payoutId: 'CB1:1',
    attempt: 1,
    inputs: spends.map(coin),
    payment: { address: 'them', satoshi: 900n },
    change: null,
    feeSatoshi: 100n,
  }
}

/** Without attempts: one that spends `deposit:0`. */
function look(paper: Paper, ...attempts: BitcoinIntent[]): Promise<boolean> {
  const asked = attempts.length === 0 ? [attempt('deposit:0')] : attempts
  return areExcluded(nodeOf(paper), CONFIRMATIONS, asked)
}

const wallet: PaperTx = { spends: ['elsewhere:0'], at: 1 }
const lostDeposit: PaperTx = { spends: ['wallet:0'], at: { lost: 7 } }
const lost = { wallet, deposit: lostDeposit }

test('a coin whose sender has spent it otherwise, as deep as it has to be, is gone, and not before', async () => {
  const spentAt = (at: PaperTx['at']) => look({ ...lost, rival: { spends: ['wallet:0'], at } })
  expect(await spentAt('mempool')).toBe(false)
  expect(await spentAt(10)).toBe(false)
  expect(await spentAt(9), 'one block less than deep').toBe(false)
  expect(await spentAt(8)).toBe(true)
  expect(await spentAt(2)).toBe(true)
})

test('a coin that was only forgotten, by mempool and blocks, may come back', async () => {
  expect(await look(lost)).toBe(false)
})

test('a coin whose bytes nobody has, or whose origin nobody has, may come back', async () => {
  expect(await look({ wallet, rival: { spends: ['wallet:0'], at: 2 } })).toBe(false)
  expect(await look({ deposit: { spends: ['unknown:0'], at: { lost: 7 } } })).toBe(false)
})

test('a coin that waits in the mempool is on its way', async () => {
  expect(await look({ wallet, deposit: { spends: ['wallet:0'], at: 'mempool' } })).toBe(false)
})

test('what stands in a block and nobody has spent excludes nothing', async () => {
  expect(await look({ wallet, deposit: { spends: ['wallet:0'], at: 7 } })).toBe(false)
})

test('an attempt that is mined or waits is not excluded, although it has spent its own inputs', async () => {
  const deposit: PaperTx = { spends: ['wallet:0'], at: 2 }
  const here = (at: PaperTx['at']) => look({ wallet, deposit, payout: { spends: ['deposit:0'], at } })
  expect(await here(3)).toBe(false)
  expect(await here('mempool')).toBe(false)
})

test('a coin of ours that was itself spent is for a person to see, whatever is gone beside it', async () => {
  const spentAt = (at: number): Paper => ({
    ...lost,
    rival: { spends: ['wallet:0'], at: 3 },
    change: { spends: ['wallet:1'], at: 2 },
    stranger: { spends: ['change:0'], at },
  })
  const both = attempt('deposit:0', 'change:0')
  expect(await look(spentAt(3), both)).toBe(false)
  expect(await look(spentAt(10), both)).toBe(false)
  expect(await look(spentAt(3), attempt('change:0'))).toBe(false)
  expect(await look(spentAt(3), attempt('deposit:0'))).toBe(true)
})

test('what a transaction of ours would have brought is gone when another one has spent its coin', async () => {
  const paper = (at: number): Paper => ({
    wallet,
    payout: { spends: ['wallet:1'], at: { lost: 7 } },
    filler: { spends: ['wallet:1'], at },
  })
  expect(await look(paper(9), attempt('payout:1'))).toBe(false)
  expect(await look(paper(8), attempt('payout:1'))).toBe(true)
})

test('of several attempts each has to be excluded', async () => {
  const paper = { ...lost, rival: { spends: ['wallet:0'], at: 3 }, change: { spends: ['wallet:1'], at: 2 } }
  const both = attempt('deposit:0', 'change:0')
  expect(await look(paper, both, attempt('change:0'))).toBe(false)
  expect(await look(paper, both, attempt('deposit:0'))).toBe(true)
  expect(await areExcluded(nodeOf(paper), CONFIRMATIONS, []), 'nothing proves nothing').toBe(false)
})

test('what is gone takes along what comes from it, however far', async () => {
  const chain = Object.fromEntries(
    Array.from({ length: 20 }, (_, at): [string, PaperTx] => [
      `step${at + 1}`,
      { spends: [`${at === 0 ? 'deposit' : `step${at}`}:0`, 'elsewhere:1'], at: { lost: 8 } },
    ]),
  )
  const paper = { ...lost, ...chain, elsewhere: { spends: [], at: 1 } }
  const last = attempt('step20:0')
  expect(await look(paper, last)).toBe(false)
  expect(await look({ ...paper, rival: { spends: ['wallet:0'], at: 3 } }, last)).toBe(true)
})

test('a line of transactions without end is not followed to its end', async () => {
  const chain = Object.fromEntries(
    Array.from({ length: 500 }, (_, at): [string, PaperTx] => [
      `step${at + 1}`,
      { spends: [`${at === 0 ? 'deposit' : `step${at}`}:0`], at: { lost: 8 } },
    ]),
  )
  const paper = { ...lost, ...chain, rival: { spends: ['wallet:0'], at: 3 } }
  expect(await look(paper, attempt('step500:0'))).toBe(false)
})

test('a block reward is gone once another block is deep where its block was', async () => {
  const reward = (height: number) => look({ deposit: { spends: [], at: { lost: height } } })
  expect(await reward(11)).toBe(false)
  expect(await reward(9)).toBe(false)
  expect(await reward(8)).toBe(true)
})

test('a node that is silent or refuses has proven nothing', async () => {
  const gone = { ...lost, rival: { spends: ['wallet:0'], at: 3 } }
  const attempts = [attempt('deposit:0')]
  const without = (error: Error, at: string) =>
    areExcluded(
      nodeOf(gone, (method) => {
        if (method === at) throw error
      }),
      CONFIRMATIONS,
      attempts,
    )
  for (const method of ['getbestblockhash', 'getrawtransaction', 'gettxout', 'getblock']) {
    expect(await without(new NoAnswer(method, 'the line is cut'), method)).toBe(false)
    const reason =
      'No such mempool transaction. Blockchain transactions are still in the process of being indexed.'
    expect(await without(new RpcRefusal(method, -5, reason), method)).toBe(false)
  }
})

/** Requests reach one of two nodes, as a load balancer likes: bit n of `whose` says which one answers request n. */
function between(nodes: readonly [Rpc, Rpc], whose: number): Rpc {
  let asked = 0
  const next = () => {
    const isSecond = (whose >> asked) & 1
    asked += 1
    return nodes[isSecond === 1 ? 1 : 0]
  }
  return {
    batch: (calls) => next().batch(calls),
    call: (...call) => next().call(...call),
  }
}

test('what one of two nodes was just told is spent is not spent deep because the other one has no such block', async () => {
  const WAYS = 2 ** 8
  const ask = (paper: Paper, tips: readonly [number, number], whose: number) => {
    const nodes = [nodeOf(paper, undefined, tips[0]), nodeOf(paper, undefined, tips[1])] as const
    return areExcluded(between(nodes, whose), CONFIRMATIONS, [attempt('deposit:0')])
  }
  const spentJustNow = { ...lost, rival: { spends: ['wallet:0'], at: 11 } }
  for (let whose = 0; whose < WAYS; whose += 1)
    expect(await ask(spentJustNow, [10, 11], whose), `answered as ${whose.toString(2)} says`).toBe(false)
  const spentLongAgo = { ...lost, rival: { spends: ['wallet:0'], at: 3 } }
  expect(await ask(spentLongAgo, [10, 11], 0)).toBe(true)
  expect(await ask(spentLongAgo, [10, 11], WAYS - 1)).toBe(true)
})

test('an output is unspent as long as it is in the best chain and nothing there spends it', async () => {
  const look = (spender: PaperTx['at'], at: PaperTx['at'] = 5) =>
    isUnspent(
      nodeOf({ ours: { spends: [], at }, theirs: { spends: ['ours:0'], at: spender } }),
      coin('ours:0'),
    )
  expect(await look('mempool'), 'what waits has spent nothing').toBe(true)
  expect(await look({ lost: 7 })).toBe(true)
  expect(await look(10)).toBe(false)
  expect(await look('mempool', { lost: 5 }), 'it is in no block').toBe(false)
  const cut = nodeOf({}, () => {
    throw new NoAnswer('gettxout', 'the line is cut')
  })
  await expect(isUnspent(cut, coin('ours:0'))).rejects.toThrow()
})
