import { createHmac, createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { isSignedBy, sign } from './signature.ts'
import vectors from './signature_vectors.json' with { type: 'json' }

const secretOf = (text: string) => createSecretKey(Buffer.from(text))

test.each(vectors)('the vector "$name" holds', ({ secret, timestamp, method, target, body, signature }) => {
  const text = `${timestamp}\n${method}\n${target}\n${body}`
  expect(createHmac('sha256', secret).update(text).digest('hex')).toBe(signature)
  const request = { timestamp, method, target, body: Buffer.from(body) }
  expect(sign(secretOf(secret), request)).toBe(signature)
  expect(isSignedBy([secretOf(secret)], request, signature)).toBe(true)
})

const request = { timestamp: '1790000000', method: 'GET', target: '/v1/order/1?a=b', body: Buffer.alloc(0) }

test('either of two live secrets signs, a third does not', () => {
  const [old, fresh, third] = [secretOf('old'), secretOf('fresh'), secretOf('third')]
  expect(isSignedBy([old, fresh], request, sign(old, request))).toBe(true)
  expect(isSignedBy([old, fresh], request, sign(fresh, request))).toBe(true)
  expect(isSignedBy([old, fresh], request, sign(third, request))).toBe(false)
  expect(isSignedBy([], request, sign(old, request))).toBe(false)
})

test.each([
  { timestamp: '1790000001' },
  { method: 'POST' },
  { target: '/v1/order/1?a=c' },
  { body: Buffer.from(' ') },
])('changing %j changes the signature', (change) => {
  const secret = secretOf('s')
  expect(isSignedBy([secret], { ...request, ...change }, sign(secret, request))).toBe(false)
})
