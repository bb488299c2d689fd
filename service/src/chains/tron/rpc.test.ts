import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { connect } from './rpc.ts'

/**
 * What: the node is asked where it listens: java-tron tells what is solid at another port.
 * How: servers on the loopback that answer with their own name and the path.
 */
const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serverCalled(name: string): Promise<string> {
  const server = createServer((request, response) => response.end(JSON.stringify(`${name} ${request.url}`)))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('what is solid is asked at its own address, and everything else at the other', async () => {
  const rpc = connect(await serverCalled('full'), 5_000, await serverCalled('solid'))
  expect(await rpc.get('wallet/getblock', { detail: 'false' })).toBe('full /wallet/getblock?detail=false')
  expect(await rpc.post('wallet/broadcasthex', {})).toBe('full /wallet/broadcasthex')
  expect(await rpc.get('walletsolidity/getblock')).toBe('solid /walletsolidity/getblock')
  expect(await rpc.post('walletsolidity/triggerconstantcontract', {})).toBe(
    'solid /walletsolidity/triggerconstantcontract',
  )
})

test('where nothing else is said, one address tells both', async () => {
  const rpc = connect(await serverCalled('gateway'), 5_000, null)
  expect(await rpc.get('walletsolidity/getblock')).toBe('gateway /walletsolidity/getblock')
})
