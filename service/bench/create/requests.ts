import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { deriveKeys } from '../../src/signer/derivation.ts'
import type { BenchRequest } from '../load.ts'

/** Who signs, and what has to be known to ask. */
export type Caller = { readonly keyId: string; readonly secret: KeyObject }

const keys = deriveKeys(Buffer.alloc(32, 7), { bitcoin: 'regtest', xrpNetworkId: 1 })
const outside = {
  bitcoin: Array.from({ length: 64 }, (_, index) => keys.address('bitcoin', { purpose: 'deposit', index })),
  evm: Array.from({ length: 64 }, (_, index) => keys.address('evm', { purpose: 'deposit', index })),
}

/** Every other one out of Bitcoin and out of an account chain, every other one fixed and float. */
const kinds = [
  { from: 'BTC', from_network: 'BTC', to: 'USDT', to_network: 'ERC20', rate_type: 'float', least: 0.01 },
  { from: 'ETH', from_network: 'ETH', to: 'BTC', to_network: 'BTC', rate_type: 'fixed', least: 0.2 },
  { from: 'BTC', from_network: 'BTC', to: 'ETH', to_network: 'ETH', rate_type: 'fixed', least: 0.01 },
  { from: 'USDT', from_network: 'ERC20', to: 'BTC', to_network: 'BTC', rate_type: 'float', least: 500 },
] as const

const TARGET = '/v1/order/create'

/** The `number`th order to ask for, signed now: other amounts, destinations and keys each time. */
export function createRequest({ keyId, secret }: Caller, number: number): BenchRequest {
  const { least, ...pair } = kinds[number % kinds.length] ?? kinds[0]
  const destinations = pair.to === 'BTC' ? outside.bitcoin : outside.evm
  const body = JSON.stringify({
    ...pair,
    amount: Number((least * (1 + (number % 9_973) / 10_000)).toFixed(6)),
    destination: destinations[number % destinations.length],
  })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', secret)
    .update(`${timestamp}\nPOST\n${TARGET}\n${body}`)
    .digest('hex')
  const headers = {
    'Content-Type': 'application/json',
    'X-API-KEY': keyId,
    'X-API-TIMESTAMP': timestamp,
    'X-API-SIGN': signature,
    'Idempotency-Key': randomUUID(),
  }
  return { method: 'POST', path: TARGET, headers, body }
}
