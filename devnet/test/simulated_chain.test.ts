import { createHash } from 'node:crypto'
import fs, { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { type Kind, openChain, type Rules, type SimulatedChain } from '../src/simulated/chain.ts'
import { openChainFile } from '../src/simulated/chain_file.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: the inside that all simulated networks share keeps blocks, undoes them exactly, and goes on from its file.
 * How: a toy network of purses, whose blocks are compared with what the state was when they were made.
 */
const folder = makeTemporaryFolder()
afterAll(() => folder.remove())

/** Moves coins from purse to purse; `after` waits until that transaction is in. */
interface Toy extends Kind {
  entry: bigint | { readonly done: true }
  tx: {
    readonly id: string
    readonly from: string
    readonly to: string
    readonly coins: bigint
    after?: string
  }
  result: { readonly left: bigint }
  seal: { readonly hash: string }
}

const toyRules = (afterReorg: Rules<Toy>['afterReorg'] = 'transactions wait again'): Rules<Toy> => ({
  firstHeight: 0,
  blockStepMs: 1_000,
  afterReorg,
  genesis: (state) => state.set('purse:bank', 1_000n),
  run: (tx, state) => {
    if (tx.after !== undefined && state.get(`tx:${tx.after}`) === undefined) return 'waits'
    const left = purse(state, tx.from) - tx.coins
    if (left < 0n) return 'void'
    if (left === 0n) state.delete(`purse:${tx.from}`)
    else state.set(`purse:${tx.from}`, left)
    state.set(`purse:${tx.to}`, purse(state, tx.to) + tx.coins)
    state.set(`tx:${tx.id}`, { done: true })
    return { included: { left } }
  },
  seal: ({ salt, parentHash }) => ({
    hash: createHash('sha256')
      .update(parentHash + salt)
      .digest('hex'),
  }),
})

type Readable = { get(key: string): Toy['entry'] | undefined; keys(prefix: string): string[] }

function purse(state: Pick<Readable, 'get'>, name: string): bigint {
  const entry = state.get(`purse:${name}`)
  return typeof entry === 'bigint' ? entry : 0n
}

function allOf(state: Readable) {
  return Object.fromEntries(
    state
      .keys('')
      .sort()
      .map((key) => [key, state.get(key)]),
  )
}

let opened = 0
function open(rules = toyRules()): { chain: SimulatedChain<Toy>; path: string } {
  opened += 1
  const path = join(folder.path, `chain${opened}.jsonl`)
  return { chain: openChain(path, rules), path }
}

let sent = 0
function pay(chain: SimulatedChain<Toy>, to: string, coins: bigint, more: Partial<Toy['tx']> = {}): string {
  sent += 1
  const tx = { id: `tx${sent}`, from: 'bank', to, coins, ...more }
  chain.submit(tx)
  return tx.id
}

/** Blocks with payments in them, and what the state was after each. */
function grow(chain: SimulatedChain<Toy>, blocks: number) {
  return Array.from({ length: blocks }, (_, index) => {
    pay(chain, `purse${index % 3}`, 10n)
    if (index % 2 === 1) pay(chain, 'bank', 10n, { from: `purse${index % 3}` })
    chain.mine(1)
    return { block: chain.head, state: allOf(chain.view().state) }
  })
}

test('a transaction waits, shows in the open state, and is found in its block', () => {
  const { chain } = open()
  const id = pay(chain, 'anna', 7n)
  expect(purse(chain.open(), 'anna')).toBe(7n)
  expect(purse(chain.view().state, 'anna')).toBe(0n)
  chain.mine(2)
  expect(chain.view().find(id)).toMatchObject({ tx: { id }, result: { left: 993n }, block: { height: 1 } })
  expect(chain.view(0).find(id), 'not yet at that height').toBeUndefined()
  expect([chain.head.height, chain.head.parentHash]).toEqual([2, chain.view().block(1)?.seal.hash])
  expect(chain.waiting).toEqual([])
})

test('the same transaction submitted twice runs once, and blocks are told until nobody listens', () => {
  const { chain } = open()
  const told: number[] = []
  const stop = chain.onBlock(({ height }) => {
    told.push(height)
    chain.open()
  })
  for (const id of ['twin', 'twin']) {
    chain.open()
    pay(chain, 'anna', 7n, { id })
  }
  expect(purse(chain.open(), 'anna')).toBe(7n)
  chain.mine(1)
  pay(chain, 'bert', 1n)
  chain.mine(2)
  expect(allOf(chain.open()), 'asked between two blocks').toEqual(allOf(chain.view().state))
  stop()
  chain.mine(1)
  expect([purse(chain.view().state, 'anna'), told]).toEqual([7n, [1, 2, 3]])
})

test('the state at every earlier height stays what it was', () => {
  const { chain } = open()
  for (const { block, state } of grow(chain, 12)) {
    expect(allOf(chain.view(block.height).state)).toEqual(state)
    expect(chain.view(block.height).head).toEqual(block)
  }
})

test('a reorganisation of any depth goes back exactly, and its transactions come again', () => {
  const { chain } = open()
  for (let depth = 1; depth <= 8; depth++) {
    const told = grow(chain, 9)
    const fork = told.at(-depth - 1)
    const last = told.at(-1)
    chain.reorg(depth)
    expect(allOf(chain.view().state), `depth ${depth}`).toEqual(fork?.state)
    expect(chain.head.height).toBe((last?.block.height ?? 0) + 1)
    expect(chain.view().blockOf(last?.block.seal.hash ?? '')).toBeUndefined()
    expect(chain.view().block((fork?.block.height ?? 0) + 1)?.parentHash).toBe(fork?.block.seal.hash)
    chain.mine(1)
    expect(allOf(chain.view().state), `depth ${depth}`).toEqual(last?.state)
  }
})

test('blocks that were undone are remembered, and what they held with the last of them', () => {
  const { chain, path } = open()
  const id = pay(chain, 'anna', 7n)
  chain.mine(2)
  const [first, second] = [chain.view().block(1), chain.head]
  chain.undo(2)
  expect([chain.head.height, chain.waiting.map((tx) => tx.id)]).toEqual([0, [id]])
  chain.mine(1)
  const again = chain.head
  chain.undo(1)
  for (const { lost } of [chain, openChain(path, toyRules())]) {
    expect(lost.blockOf(second.seal.hash)).toEqual(second)
    expect(lost.blockOf(first?.seal.hash ?? '')).toEqual(first)
    expect(lost.find(id)).toEqual(again)
    expect([lost.blockOf('nothing'), lost.find('nothing')]).toEqual([undefined, undefined])
  }
})

test('where a reorganisation loses transactions they are gone, and where there is none it is refused', () => {
  const { chain } = open(toyRules('transactions are gone'))
  pay(chain, 'anna', 7n)
  chain.mine(1)
  chain.reorg(1)
  chain.mine(1)
  expect(allOf(chain.view().state)).toEqual({ 'purse:bank': 1_000n })
  expect(() => chain.reorg(99)).toThrow('cannot undo 99 of 3 blocks')
  expect(() => open(toyRules('no reorganisations')).chain.reorg(1)).toThrow('final')
})

test('one that waits for another gets in with it, whichever came first; one that cannot run is thrown away', () => {
  const { chain } = open()
  const second = pay(chain, 'bert', 2n, { after: 'first' })
  chain.mine(1)
  expect(chain.waiting.map(({ id }) => id)).toEqual([second])
  expect(purse(chain.open(), 'bert')).toBe(0n)
  pay(chain, 'anna', 1n, { id: 'first' })
  expect(purse(chain.open(), 'bert')).toBe(2n)
  const tooMuch = pay(chain, 'cora', 5_000n)
  chain.mine(1)
  expect(chain.head.included.map(({ tx }) => tx.id)).toEqual(['first', second])
  expect([chain.waiting, chain.view().find(tooMuch)]).toEqual([[], undefined])
})

test('the same file goes on with the same blocks, states and queue', () => {
  const { chain, path } = open()
  grow(chain, 6)
  chain.reorg(2)
  pay(chain, 'anna', 3n)
  const gone = pay(chain, 'anna', 4n)
  chain.withdraw(gone)
  const again = openChain(path, toyRules())
  expect(again.waiting).toEqual(chain.waiting)
  for (let height = 0; height <= chain.head.height; height++) {
    expect(again.view(height).head).toEqual(chain.view(height).head)
    expect(allOf(again.view(height).state)).toEqual(allOf(chain.view(height).state))
  }
  again.mine(1)
  expect(purse(again.view().state, 'anna')).toBe(3n)
})

test('a file whose last line was cut off by a kill goes on from the line before', () => {
  const { chain, path } = open()
  grow(chain, 3)
  const whole = readFileSync(path, 'utf8')
  chain.mine(1)
  const longer = readFileSync(path, 'utf8')
  writeFileSync(path, longer.slice(0, -10))
  const again = openChain(path, toyRules())
  expect(again.head.height).toBe(3)
  expect(readFileSync(path, 'utf8')).toBe(whole)
  again.mine(1)
  expect(openChain(path, toyRules()).head).toEqual(again.head)
  appendFileSync(path, '{"block"')
  expect(openChain(path, toyRules()).head).toEqual(again.head)
})

/** The next line, which is to begin with "too", is cut off after five bytes: the disk is full by then, and has room again after that. */
function fillDisk(): void {
  const { writeSync } = fs
  const written = vi
    .spyOn(fs, 'writeSync')
    .mockImplementationOnce((file) => writeSync(file, '"too '))
    .mockImplementationOnce(() => {
      throw new Error('ENOSPC: no space left on device, write')
    })
  syncBuiltinESMExports()
  onTestFinished(() => {
    written.mockRestore()
    syncBuiltinESMExports()
  })
}

test('a line for which the disk has no room leaves nothing in the file, which goes on with the next', () => {
  const path = join(folder.path, 'full.jsonl')
  const file = openChainFile<string>(path)
  file.append('before')
  fillDisk()
  expect(() => file.append('too much for the disk')).toThrow('ENOSPC')
  file.append('after')
  file.close()
  const again = openChainFile<string>(path)
  again.close()
  expect(again.lines).toEqual(['before', 'after'])
})

test('what a file could not give back is refused at once', () => {
  const { chain, path } = open()
  for (const after of [Buffer.from('ab'), new Uint8Array(2), new Date(0), new Map()])
    expect(() => pay(chain, 'anna', 1n, { after: after as unknown as string })).toThrow('no plain data')
  expect([chain.waiting, openChain(path, toyRules()).waiting]).toEqual([[], []])
})

test('an entry cannot be changed in place, because the past would change with it', () => {
  const { chain } = open()
  pay(chain, 'anna', 1n, { id: 'kept' })
  chain.mine(1)
  const entry = chain.view().state.get('tx:kept') as { done: boolean }
  expect(() => {
    entry.done = false
  }).toThrow(TypeError)
})
