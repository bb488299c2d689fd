import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { formatDecimal } from '../../domain/money/decimal.ts'
import { objectIn, satoshiIn } from './replies.ts'
import { connect, NoAnswer, RpcRefusal } from './rpc.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

type Seen = { authorization: string | undefined; body: { id: number; method: string; params: unknown[] }[] }

/** A server that answers with the text it is given, in which ids count from the one that was asked with. */
async function serve(answer: (seen: Seen) => { status?: number; text: string }) {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const body = JSON.parse(text) as Seen['body']
    const said = answer({ authorization: request.headers.authorization, body })
    const first = body[0]?.id ?? 0
    response
      .writeHead(said.status ?? 200)
      .end(said.text.replace(/"id":(\d)\b/g, (_, at) => `"id":${first + Number.parseInt(at, 10)}`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  return `http://us%40er:p%3Aass%2Fword@127.0.0.1:${port}/`
}

describe('rpc', () => {
  test('every amount a node can print arrives to the satoshi', async () => {
    let printed = ''
    const rpc = connect(
      await serve(() => ({ text: `[{"id":0,"error":null,"result":{"fee":${printed}}}]` })),
      5_000,
    )
    await fc.assert(
      fc.asyncProperty(fc.bigInt(0n, 2_100_000_000_000_000n), fc.boolean(), async (satoshi, isPadded) => {
        const digits = satoshi.toString().padStart(9, '0')
        printed = isPadded ? `${digits.slice(0, -8)}.${digits.slice(-8)}` : formatDecimal(satoshi, 8)
        const result = objectIn(await rpc.call('getrawtransaction'), 'result')
        expect(satoshiIn(result.fee, 'fee')).toBe(satoshi)
      }),
    )
  })

  test.each(['1e-8', '0.123456789', '-0.1', '"0.1 BTC"', 'null', '{}', '99999999999999999999'])(
    '%s is no amount',
    async (printed) => {
      const rpc = connect(
        await serve(() => ({ text: `[{"id":0,"error":null,"result":{"fee":${printed}}}]` })),
        5_000,
      )
      const result = objectIn(await rpc.call('getrawtransaction'), 'result')
      if (printed === '99999999999999999999')
        expect(satoshiIn(result.fee, 'fee')).toBe(99999999999999999999_00000000n)
      else expect(() => satoshiIn(result.fee, 'fee')).toThrow(NoAnswer)
    },
  )

  test('in a list of what waits no number is looked for, and none becomes text', async () => {
    const rpc = connect(await serve(() => ({ text: '[{"id":0,"error":null,"result":["aa",0.5]}]' })), 5_000)
    expect(await rpc.call('getrawmempool')).toEqual(['aa', 0.5])
    expect(await rpc.call('getrawmempool', true)).toEqual(['aa', '0.5'])
  })

  test('replies are matched by their id, whatever their order, each with its own verdict', async () => {
    const url = await serve(({ body, authorization }) => {
      expect(authorization).toBe(`Basic ${Buffer.from('us@er:p:ass/word').toString('base64')}`)
      const replies = body.map(({ id, method, params }) =>
        method === 'bad'
          ? { id, result: null, error: { code: -5, message: 'no such thing' } }
          : { id, result: [method, ...params], error: null },
      )
      return { text: JSON.stringify(replies.reverse()) }
    })
    const rpc = connect(url, 5_000)
    const [first, second, third] = await rpc.batch([['a', 1], ['bad'], ['c', 'x']])
    expect(first).toEqual({ ok: true, value: ['a', 1] })
    expect(second).toMatchObject({ ok: false, rejection: { code: -5, reason: 'no such thing' } })
    expect(third).toEqual({ ok: true, value: ['c', 'x'] })
    await expect(rpc.call('bad')).rejects.toThrow(RpcRefusal)
  })

  test.each([
    ['no JSON', 200, '<html>'],
    ['half a reply', 200, '[{"id":0,"res'],
    ['nothing', 200, ''],
    ['a busy node', 503, 'Work queue depth exceeded'],
    ['a wrong password', 401, ''],
    ['an empty batch', 200, '[]'],
    ['another id', 200, '[{"id":7,"error":null,"result":1}]'],
    ['neither result nor error', 200, '[{"id":0,"error":null}]'],
    ['an error without code', 200, '[{"id":0,"error":{"message":"x"},"result":null}]'],
    ['no batch', 200, '{"id":0,"error":null,"result":1}'],
    ['a bare value', 200, 'null'],
  ])('%s is no answer', async (_, status, text) => {
    const url = await serve(() => ({ status, text }))
    await expect(connect(url, 5_000).call('getblockcount')).rejects.toThrow(NoAnswer)
  })

  test('nobody listening is no answer, and the password is not in the error', async () => {
    const url = await serve(() => ({ text: '' }))
    for (const stop of stops.splice(0)) await stop()
    const error = await connect(url, 5_000)
      .call('getblockcount')
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(NoAnswer)
    expect(`${error} ${(error as Error).stack}`).not.toMatch(/ass|us@er/)
  })
})
