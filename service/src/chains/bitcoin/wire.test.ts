import { RawTx, Transaction } from '@scure/btc-signer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseBlock, parseTx } from './wire.ts'

const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const script = fc.uint8Array({ maxLength: 300 })

/** Any transaction the format can carry, written by another implementation. */
const anyTx = fc
  .record({
    version: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    inputs: fc.array(
      fc.record({
        txid: bytesOf(32),
        index: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
        finalScriptSig: script,
        sequence: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    outputs: fc.array(fc.record({ amount: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), script }), {
      minLength: 1,
      maxLength: 300,
    }),
    segwitFlag: fc.boolean(),
    witness: fc.array(script, { minLength: 1, maxLength: 4 }),
    lockTime: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  })
  .map(({ witness, ...tx }) => ({ ...tx, witnesses: tx.segwitFlag ? tx.inputs.map(() => witness) : [] }))

describe('parseTx', () => {
  test('reads what another implementation writes, satoshi for satoshi', () => {
    fc.assert(
      fc.property(anyTx, (tx) => {
        const bytes = RawTx.encode(tx)
        const parsed = parseTx(Buffer.from(bytes))
        expect(parsed.outputs.map(({ satoshi }) => satoshi)).toEqual(tx.outputs.map(({ amount }) => amount))
        expect(parsed.outputs.map((output) => [...output.script])).toEqual(
          tx.outputs.map((output) => [...output.script]),
        )
        const other = Transaction.fromRaw(bytes, {
          allowUnknownOutputs: true,
          disableScriptCheck: true,
          allowUnknownVersion: true,
        })
        expect(parsed.txid).toBe(other.id)
      }),
      { numRuns: 60 },
    )
  })

  test('a byte less or more is no transaction', () => {
    fc.assert(
      fc.property(anyTx, fc.nat(), (tx, cut) => {
        const bytes = Buffer.from(RawTx.encode(tx))
        expect(() => parseTx(bytes.subarray(0, cut % bytes.length))).toThrow()
        expect(() => parseTx(Buffer.concat([bytes, Buffer.from([0])]))).toThrow()
      }),
      { numRuns: 60 },
    )
  })
})

/** Block 0 of Bitcoin and, to have more than one transaction, block 170: the first payment between people. */
const genesis =
  '0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c0101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000'
const block170 =
  '0100000055bd840a78798ad0da853f68974f3d183e2bd1db6a842c1feecf222a00000000ff104ccb05421ab93e63f8c3ce5c2c2e9dbb37de2764b3a3175c8166562cac7d51b96a49ffff001d283e9e700201000000010000000000000000000000000000000000000000000000000000000000000000ffffffff0704ffff001d0102ffffffff0100f2052a01000000434104d46c4968bde02899d2aa0963367c7a6ce34eec332b32e42e5f3407e052d64ac625da6f0718e7b302140434bd725706957c092db53805b821a85b23a7ac61725bac000000000100000001c997a5e56e104102fa209c6a852dd90660a20b2d9c352423edce25857fcd3704000000004847304402204e45e16932b8af514961a1d3a1a25fdf3f4f7732e9d624c6c61548ab5fb8cd410220181522ec8eca07de4860a4acdd12909d831cc56cbbac4622082221a8768d1d0901ffffffff0200ca9a3b00000000434104ae1a62fe09c5f51b13905f07f06b99a2f7159b2225f374cd378d71302fa28414e7aab37397f554a7df5f142c21c1b7303b8a0626f1baded5c72a704f7e6cd84cac00286bee0000000043410411db93e1dcdb8a016b49840f8c53bc1eb68a382e97b1482ecad7b148a6909a5cb2e0eaddfb84ccf9744464f82e160bfa9b8b64f9d4c03f999b8643f656b412a3ac00000000'

describe('parseBlock', () => {
  test('the first block of all', () => {
    const block = parseBlock(Buffer.from(genesis, 'hex'))
    expect(block).toMatchObject({
      hash: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
      parentHash: '0'.repeat(64),
      timeSeconds: 1231006505,
    })
    expect(block.txs).toMatchObject([{ isCoinbase: true, outputs: [{ satoshi: 50_0000_0000n }] }])
  })

  test('a block with a payment', () => {
    const block = parseBlock(Buffer.from(block170, 'hex'))
    expect(block.hash).toBe('00000000d1145790a8694403d4063f323d499e655c83426834d4ce2f8dd4a2ee')
    expect(block.txs.map(({ isCoinbase }) => isCoinbase)).toEqual([true, false])
    expect(block.txs[1]?.txid).toBe('f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16')
    expect(block.txs[1]?.outputs.map(({ satoshi }) => satoshi)).toEqual([10_0000_0000n, 40_0000_0000n])
  })

  test('a block with anything changed, missing or added is refused', () => {
    const bytes = Buffer.from(block170, 'hex')
    const paid = bytes.indexOf('00ca9a3b00000000', 0, 'hex')
    const richer = Buffer.from(bytes)
    richer[paid] = 0xff
    expect(() => parseBlock(richer)).toThrow('commits to')
    expect(() => parseBlock(bytes.subarray(0, -1))).toThrow()
    expect(() => parseBlock(Buffer.concat([bytes, bytes]))).toThrow()
    const withoutPayment = Buffer.concat([
      bytes.subarray(0, 80),
      Buffer.from([1]),
      bytes.subarray(81, 81 + 134),
    ])
    expect(() => parseBlock(withoutPayment)).toThrow('commits to')
    expect(() => parseBlock(Buffer.alloc(0))).toThrow()
  })
})
