import { expect, test } from 'vitest'
import {
  bitcoinIntent,
  eosIntent,
  evmIntent,
  sealed,
  solanaIntent,
  stellarIntent,
  tronIntent,
  xrpIntent,
} from '../testing/fixtures.ts'
import { PROTOCOL } from './protocol.ts'

/** The names of its fields, those of what it holds behind a dot. The signer takes an object with exactly these. */
function fieldsOf(value: unknown): string[] {
  if (Array.isArray(value)) return fieldsOf(value[0])
  if (typeof value !== 'object' || value === null) return []
  const named = Object.entries(value).flatMap(([name, held]) => {
    const inner = fieldsOf(held)
    return inner.length === 0 ? [name] : inner.map((field) => `${name}.${field}`)
  })
  return named.sort()
}

test('whoever changes what a request holds raises the number, so that no other release takes it for malformed', () => {
  const intents = [
    ...[bitcoinIntent(), evmIntent(), xrpIntent(), stellarIntent()],
    ...[tronIntent(), eosIntent(), solanaIntent()],
  ]
  const requests = [...intents, sealed()].map((held) => fieldsOf(held).join(' '))
  expect({ PROTOCOL, requests }).toMatchInlineSnapshot(`
    {
      "PROTOCOL": 2,
      "requests": [
        "attempt chain change.address change.key.index change.key.purpose change.satoshi family feeSatoshi inputs.address inputs.index inputs.key.index inputs.key.purpose inputs.satoshi inputs.txHash payment.address payment.satoshi payoutId",
        "attempt chain evmChainId family from.index from.purpose gasLimit maxFeePerGasWei maxPriorityFeePerGasWei nonce payoutId to token units",
        "attempt chain family feeDrops from.index from.purpose lastLedgerSequence networkId payment.drops payment.tag payment.to payoutId sequence",
        "attempt chain family feeStroops from.index from.purpose maxTimeS passphrase payment.creates payment.memo payment.stroops payment.to payoutId sequence",
        "attempt chain expirationMs family feeLimitSun from.index from.purpose payoutId reference.id reference.timeMs timestampMs to token units",
        "account attempt chain chainId expirationMs family from.index from.purpose netWordsMax payment.memo payment.to payment.units payoutId reference.id reference.timeMs",
        "attempt chain computeUnits family from.index from.purpose lastHeight payer.index payer.purpose payoutId reference.blockhash reference.height reference.slot to token unitPriceMicroLamports units",
        "depositAsset destination destinationTag kind orderId payeeKey payoutAsset refundAddress seal",
      ],
    }
  `)
})
