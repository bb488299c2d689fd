import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { defaultPolicy } from '../engine/default_policy.ts'
import { expectGrowth } from '../engine/watching/growth.ts'
import type { World } from '../engine/world.ts'
import type { Chain } from './chain.ts'
import { eos } from './eos/index.ts'
import { CHAIN_ID, idOf, infoAt } from './eos/testing/scripted_node.ts'
import { stellar } from './stellar/index.ts'
import { hashOf, ledgerAt, pageOf } from './stellar/testing/scripted_horizon.ts'
import { tron } from './tron/index.ts'
import { blockAt } from './tron/testing/scripted_node.ts'

/**
 * What: where the time of a block can be relied on, the head tells that of the newest one, so that a node which is catching up is not
 * believed. On EOS that is not the irreversible one, which may be old on a node that lacks nothing.
 * How: servers on the loopback that answer what a node of each network would.
 */
let server: Server | undefined

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

async function nodeAnswering(answer: (path: string) => unknown): Promise<string> {
  const node = createServer((request, response) => response.end(JSON.stringify(answer(request.url ?? ''))))
  server = node
  await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(node.address() as AddressInfo).port}`
}

const reserveAddress = () => ''
const timeoutMs = 5_000

type Case = { readonly open: () => Promise<Chain>; readonly head: Awaited<ReturnType<Chain['head']>> }

const cases: Readonly<Record<string, Case>> = {
  TRON: {
    open: async () => {
      const rpcUrl = await nodeAnswering(() => blockAt(9, 27_000))
      const id = 'TRX' as const
      return tron({
        ...{ id, rpcUrl, genesisBlockId: '', feeLimitSunMax: 1n, tokens: {} },
        ...{ timeoutMs, reserveAddress },
      })
    },
    head: { height: 9, hash: blockAt(9, 0).blockID, timeMs: 27_000 },
  },
  Stellar: {
    open: async () => {
      const horizonUrl = await nodeAnswering(pageOf(ledgerAt(9)))
      return stellar({ id: 'XLM', horizonUrl, passphrase: '', feeStroopsMax: 1n, timeoutMs, reserveAddress })
    },
    head: { height: 9, hash: hashOf(9), timeMs: 1_009_000 },
  },
  EOS: {
    open: async () => {
      const rpcUrl = await nodeAnswering(() => infoAt(100, 400))
      return eos({ id: 'EOS', rpcUrl, chainId: CHAIN_ID, account: '', publicKey: '', timeoutMs })
    },
    head: { height: 100, hash: idOf(100), timeMs: 200_000 },
  },
}

test.each(Object.entries(cases))(
  'the head of %s tells when its newest block was made',
  async (_, { open, head }) => {
    const chain = await open()
    expect(await chain.head()).toEqual(head)
  },
)

test.each(Object.entries(cases))(
  'of a node of %s whose newest block is an hour old nothing counts',
  async (_, of) => {
    const chain = await of.open()
    const head = await chain.head()
    const { timeMs = Number.NaN } = of.head
    const look = (wallMs: number) => {
      const world = { clock: { wallMs: () => wallMs }, policy: defaultPolicy } as unknown as World
      expectGrowth(world, chain.id)(head)
    }
    expect(() => look(timeMs + 10_000)).not.toThrow()
    expect(() => look(timeMs + 3_600_000)).toThrow('for 3600 s')
  },
)
