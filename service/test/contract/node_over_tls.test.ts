import { createServer, globalAgent } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { openLine } from '../../src/chains/node_line.ts'
import { certificate } from '../../src/channels/email/testing/certificate.ts'
import { PATIENCE_MS } from '../harness/patience.ts'

/** What: a node's address may begin with https, and whoever is not who the address says is not asked. */
const stops: (() => void)[] = []
afterEach(() => {
  globalAgent.options.ca = undefined
  globalAgent.destroy()
  for (const stop of stops.splice(0)) stop()
})

async function startNode(): Promise<{
  readonly port: number
  readonly asked: readonly (string | undefined)[]
}> {
  const asked: (string | undefined)[] = []
  const server = createServer(certificate, (request, response) => {
    asked.push(request.headers.host)
    response.end('"yes"')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, asked }
}

test('a node whose certificate is trusted is asked over TLS', async () => {
  const { port, asked } = await startNode()
  globalAgent.options.ca = certificate.cert
  const line = openLine(`https://127.0.0.1:${port}/canary`, PATIENCE_MS)
  expect(await line.ask({ method: 'POST', body: '{}' })).toEqual({
    ok: true,
    value: { status: 200, text: '"yes"' },
  })
  expect(asked).toEqual([`127.0.0.1:${port}`])
})

test.each([
  ['nobody vouches for', '127.0.0.1', undefined, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['is another’s', 'localhost', certificate.cert, 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('a node whose certificate %s is asked nothing', async (_, host, ca, code) => {
  const { port, asked } = await startNode()
  globalAgent.options.ca = ca
  const line = openLine(`https://${host}:${port}/canary`, PATIENCE_MS)
  expect(await line.ask({ method: 'POST', body: '{}' })).toEqual({
    ok: false,
    rejection: `the node cannot be reached (${code})`,
  })
  expect(asked).toEqual([])
})
