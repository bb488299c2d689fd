import { createHash } from 'node:crypto'
import type { Chance } from '../../test/harness/chance.ts'
import { ownProgram, paidIn } from './own_addresses.ts'

export type BitcoinBlock = { readonly hash: string; readonly hex: string; readonly outputs: number }

/** Of 4,000,000: as full as miners make them. */
const WEIGHT = 3_990_000

/**
 * A block as mainnet has them: some 3,000 transactions of one to a few inputs with 1.5 kB of witness here and there,
 * payments with change, batches of exchanges, inscriptions. The bytes are whole and the header commits to them; nothing
 * is signed, which nobody looks at who trusts a node.
 */
export function makeBitcoinBlock(chance: Chance, parentHash: string, height: number): BitcoinBlock {
  const txs = [coinbase(height)]
  let weight = 4 * 80 + weightOf(txs[0])
  let outputs = 1
  for (const index of paidIn(height)) {
    const tx = payment(chance, [Buffer.concat([Buffer.from([0x00, 0x14]), ownProgram('BTC', index)])])
    txs.push(tx)
    weight += weightOf(tx)
    outputs += 2
  }
  for (;;) {
    const scripts = Array.from({ length: outputCount(chance) }, () => someScript(chance))
    const tx = payment(chance, scripts)
    if (weight + weightOf(tx) > WEIGHT) break
    txs.push(tx)
    weight += weightOf(tx)
    outputs += scripts.length + 1
  }
  const header = Buffer.alloc(80)
  header.writeInt32LE(0x20000000, 0)
  Buffer.from(parentHash, 'hex').reverse().copy(header, 4)
  merkleRoot(txs.map(({ txid }) => txid)).copy(header, 36)
  header.writeUInt32LE(1_800_000_000 + height * 600, 68)
  const bytes = Buffer.concat([header, compactSize(txs.length), ...txs.map((tx) => tx.bytes)])
  return { hash: sha256d(header).reverse().toString('hex'), hex: bytes.toString('hex'), outputs }
}

type Tx = { readonly bytes: Buffer; readonly baseBytes: number; readonly txid: Buffer }

function weightOf(tx: Tx | undefined): number {
  return tx === undefined ? 0 : 3 * tx.baseBytes + tx.bytes.length
}

/** One payment mostly; an exchange pays many at once. */
function outputCount(chance: Chance): number {
  const dice = chance.below(100)
  if (dice < 80) return 1
  return dice < 97 ? chance.between(2, 4) : chance.between(10, 60)
}

function someScript(chance: Chance): Buffer {
  const dice = chance.below(100)
  if (dice < 50) return Buffer.concat([Buffer.from([0x00, 0x14]), chance.bytes(20)])
  if (dice < 65) return Buffer.concat([Buffer.from([0x51, 0x20]), chance.bytes(32)])
  if (dice < 80) return Buffer.concat([Buffer.from([0xa9, 0x14]), chance.bytes(20), Buffer.from([0x87])])
  if (dice < 93) {
    return Buffer.concat([Buffer.from([0x76, 0xa9, 0x14]), chance.bytes(20), Buffer.from([0x88, 0xac])])
  }
  if (dice < 95) return Buffer.concat([Buffer.from([0x00, 0x20]), chance.bytes(32)])
  return Buffer.concat([Buffer.from([0x6a, 0x14]), chance.bytes(20)])
}

function payment(chance: Chance, scripts: readonly Buffer[]): Tx {
  const dice = chance.below(100)
  const inputs = dice < 60 ? 1 : dice < 90 ? chance.between(2, 4) : chance.between(5, 20)
  const spends = Array.from({ length: inputs }, () =>
    Buffer.concat([chance.bytes(36), compactSize(0), Buffer.from('fdffffff', 'hex')]),
  )
  const change = Buffer.concat([Buffer.from([0x00, 0x14]), chance.bytes(20)])
  const isInscription = chance.below(100) < 5
  const witness = Array.from({ length: inputs }, (_, index) =>
    isInscription && index === 0
      ? stack([chance.bytes(64), chance.bytes(chance.between(200, 4_000)), chance.bytes(33)])
      : stack([chance.bytes(72), chance.bytes(33)]),
  )
  return assemble(
    spends,
    [...scripts, change].map((script) => output(BigInt(chance.between(1_000, 2 ** 31)), script)),
    witness,
  )
}

function coinbase(height: number): Tx {
  const outpoint = Buffer.concat([Buffer.alloc(32), Buffer.from('ffffffff', 'hex')])
  const note = Buffer.alloc(8)
  note.writeUInt32LE(height)
  const input = Buffer.concat([outpoint, compactSize(note.length), note, Buffer.from('ffffffff', 'hex')])
  const paid = output(312_500_000n, Buffer.concat([Buffer.from([0x00, 0x14]), Buffer.alloc(20, 7)]))
  return assemble([input], [paid], [stack([Buffer.alloc(32)])])
}

function assemble(inputs: readonly Buffer[], outputs: readonly Buffer[], witness: readonly Buffer[]): Tx {
  const version = Buffer.from('02000000', 'hex')
  const body = Buffer.concat([compactSize(inputs.length), ...inputs, compactSize(outputs.length), ...outputs])
  const lockTime = Buffer.alloc(4)
  const base = Buffer.concat([version, body, lockTime])
  const bytes = Buffer.concat([version, Buffer.from([0x00, 0x01]), body, ...witness, lockTime])
  return { bytes, baseBytes: base.length, txid: sha256d(base) }
}

function output(satoshi: bigint, script: Buffer): Buffer {
  const value = Buffer.alloc(8)
  value.writeBigUInt64LE(satoshi)
  return Buffer.concat([value, compactSize(script.length), script])
}

function stack(items: readonly Buffer[]): Buffer {
  return Buffer.concat([
    compactSize(items.length),
    ...items.flatMap((item) => [compactSize(item.length), item]),
  ])
}

function compactSize(size: number): Buffer {
  if (size < 0xfd) return Buffer.from([size])
  const long = Buffer.alloc(3, 0xfd)
  long.writeUInt16LE(size, 1)
  return long
}

function merkleRoot(txids: readonly Buffer[]): Buffer {
  let row = [...txids]
  while (row.length > 1) {
    const above: Buffer[] = []
    for (let at = 0; at < row.length; at += 2) {
      const left = row[at] ?? Buffer.alloc(32)
      above.push(sha256d(Buffer.concat([left, row[at + 1] ?? left])))
    }
    row = above
  }
  return row[0] ?? Buffer.alloc(32)
}

function sha256d(bytes: Buffer): Buffer {
  return createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest()
}
