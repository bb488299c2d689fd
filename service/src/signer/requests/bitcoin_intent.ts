import { BITCOIN_INPUTS_MAX } from '../../domain/payouts/bitcoin_inputs.ts'
import type { BitcoinIntent, Coin } from '../../domain/payouts/intent.ts'
import { bounded, integer, Malformed, orNull, record, text, UINT32_MAX } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

const SATOSHI_MAX = 21_000_000n * 100_000_000n
/** Whether it is an address of the configured network is checked where the transaction is built. */
const bitcoinAddressShape = /^[0-9A-Za-z]{14,90}$/

export function readBitcoinIntent(value: unknown): BitcoinIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'inputs', 'payment', 'change', 'feeSatoshi']
  const fields = record('intent', value, names)
  const payment = record('intent.payment', fields.payment, ['address', 'satoshi'])
  return {
    family: 'bitcoin',
    ...readIdentity(fields, 'bitcoin'),
    inputs: readInputs(fields.inputs),
    payment: {
      address: text('intent.payment.address', payment.address, bitcoinAddressShape),
      satoshi: satoshi('intent.payment.satoshi', payment.satoshi),
    },
    change: orNull(fields.change, (change) => {
      const parts = record('intent.change', change, ['address', 'satoshi', 'key'])
      return {
        address: text('intent.change.address', parts.address, bitcoinAddressShape),
        satoshi: satoshi('intent.change.satoshi', parts.satoshi),
        key: readKey('intent.change.key', parts.key),
      }
    }),
    feeSatoshi: satoshi('intent.feeSatoshi', fields.feeSatoshi),
  }
}

function readInputs(value: unknown): readonly Coin[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > BITCOIN_INPUTS_MAX) {
    throw new Malformed(`intent.inputs has 1 to ${BITCOIN_INPUTS_MAX} coins`)
  }
  const coins = Array.from(value, (item, at): Coin => {
    const name = `intent.inputs[${at}]`
    const fields = record(name, item, ['txHash', 'index', 'satoshi', 'address', 'key'])
    return {
      txHash: text(`${name}.txHash`, fields.txHash, /^[0-9a-f]{64}$/),
      index: integer(`${name}.index`, fields.index, 0, UINT32_MAX),
      satoshi: satoshi(`${name}.satoshi`, fields.satoshi),
      address: text(`${name}.address`, fields.address, bitcoinAddressShape),
      key: readKey(`${name}.key`, fields.key),
    }
  })
  if (new Set(coins.map((coin) => `${coin.txHash}:${coin.index}`)).size !== coins.length) {
    throw new Malformed('intent.inputs names a coin twice')
  }
  return coins
}

function satoshi(name: string, value: unknown): bigint {
  return bounded(name, value, 1n, SATOSHI_MAX)
}
