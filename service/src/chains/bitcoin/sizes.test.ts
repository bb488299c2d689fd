import { p2wpkh, Transaction } from '@scure/btc-signer'
import { pubECDSA } from '@scure/btc-signer/utils.js'
import { expect, test } from 'vitest'
import type { OutputKind } from './addresses.ts'
import { networkFacts } from './settings.ts'
import { dustLimit, feeFor, vbytesOf } from './sizes.ts'

const addresses: Record<OutputKind, string> = {
  pkh: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
  sh: '2N3vVYSK5XRgVSGWy21PnsRmBUywSQNdCsf',
  wpkh: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  wsh: 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
  tr: 'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6',
}
const kinds = Object.keys(addresses) as OutputKind[]

test('a signed transaction is as large as foreseen, short signatures aside', () => {
  const privateKey = new Uint8Array(32).fill(1)
  const { script } = p2wpkh(pubECDSA(privateKey), networkFacts.regtest.spelling)
  const outputLists = [...kinds.map((kind) => [kind]), ...kinds.map((kind): OutputKind[] => [kind, 'wpkh'])]
  for (const inputs of [1, 2, 3, 7, 252, 253]) {
    for (const outputs of inputs > 7 ? outputLists.slice(0, 1) : outputLists) {
      const tx = new Transaction({ version: 2 })
      for (let index = 0; index < inputs; index += 1) {
        tx.addInput({
          txid: new Uint8Array(32).fill(9),
          index,
          sequence: 0xfffffffd,
          witnessUtxo: { script, amount: 100_000n },
        })
      }
      for (const kind of outputs) tx.addOutputAddress(addresses[kind], 1_000n, networkFacts.regtest.spelling)
      tx.sign(privateKey)
      tx.finalize()
      const foreseen = vbytesOf(inputs, outputs)
      const actual = BigInt(tx.vsize)
      expect(actual, `${inputs} inputs to ${outputs}`).toBeLessThanOrEqual(foreseen)
      expect(actual).toBeGreaterThanOrEqual(foreseen - BigInt(Math.ceil(inputs / 4)))
    }
  }
})

test('the dust limits of Bitcoin Core', () => {
  expect(kinds.map((kind) => [kind, dustLimit(kind)])).toEqual([
    ['pkh', 546n],
    ['sh', 540n],
    ['wpkh', 294n],
    ['wsh', 330n],
    ['tr', 330n],
  ])
})

test('a fee is rounded up', () => {
  expect(feeFor(141n, 1_000n)).toBe(141n)
  expect(feeFor(141n, 1_001n)).toBe(142n)
  expect(feeFor(1n, 1n)).toBe(1n)
})
