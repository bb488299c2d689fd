import { createHash } from 'node:crypto'

/**
 * Blocks and transactions as the network carries them
 * (https://developer.bitcoin.org/reference/block_chain.html, BIP-144). We read these rather than the node's JSON:
 * amounts are whole satoshi, a block is a third of the size, and its hash proves that nothing is missing.
 */
export type WireTx = {
  readonly txid: string
  readonly isCoinbase: boolean
  readonly outputs: readonly { readonly satoshi: bigint; readonly script: Uint8Array }[]
}

export type WireBlock = {
  readonly hash: string
  readonly parentHash: string
  readonly timeSeconds: number
  readonly txs: readonly WireTx[]
}

/** Throws on anything but one whole transaction. */
export function parseTx(bytes: Buffer): WireTx {
  const reader = new Reader(bytes)
  const tx = readTx(reader)
  reader.end()
  return tx
}

/** Throws unless the bytes are a whole block whose header commits to exactly these transactions. */
export function parseBlock(bytes: Buffer): WireBlock {
  const reader = new Reader(bytes)
  const header = reader.take(80)
  const count = reader.compactSize()
  const txs: WireTx[] = []
  for (let index = 0; index < count; index += 1) txs.push(readTx(reader))
  reader.end()
  if (merkleRoot(txs.map(({ txid }) => txid)) !== reversedHex(header.subarray(36, 68))) {
    throw new Error('the block does not hold the transactions its header commits to')
  }
  return {
    hash: reversedHex(sha256d(header)),
    parentHash: reversedHex(header.subarray(4, 36)),
    timeSeconds: header.readUInt32LE(68),
    txs,
  }
}

function readTx(reader: Reader): WireTx {
  const version = reader.take(4)
  const isSegwit = reader.skipSegwitMarker()
  const bodyStart = reader.offset
  const inputs = reader.compactSize()
  let isCoinbase = false
  for (let index = 0; index < inputs; index += 1) {
    const outpoint = reader.take(36)
    if (index === 0) isCoinbase = outpoint.subarray(0, 32).every((byte) => byte === 0)
    reader.take(reader.compactSize())
    reader.take(4)
  }
  const outputs: { satoshi: bigint; script: Uint8Array }[] = []
  const outputCount = reader.compactSize()
  for (let index = 0; index < outputCount; index += 1) {
    const satoshi = reader.take(8).readBigUInt64LE()
    outputs.push({ satoshi, script: reader.take(reader.compactSize()) })
  }
  const body = reader.since(bodyStart)
  for (let input = 0; isSegwit && input < inputs; input += 1) {
    const items = reader.compactSize()
    for (let item = 0; item < items; item += 1) reader.take(reader.compactSize())
  }
  const lockTime = reader.take(4)
  return { txid: reversedHex(sha256d(version, body, lockTime)), isCoinbase, outputs }
}

class Reader {
  offset = 0
  readonly #bytes: Buffer
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  take(length: number): Buffer {
    const end = this.offset + length
    if (end > this.#bytes.length) throw new Error('the bytes end too early')
    const taken = this.#bytes.subarray(this.offset, end)
    this.offset = end
    return taken
  }

  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.offset)
  }

  compactSize(): number {
    const first = this.take(1).readUInt8()
    if (first < 0xfd) return first
    if (first === 0xfd) return this.take(2).readUInt16LE()
    if (first === 0xfe) return this.take(4).readUInt32LE()
    throw new Error('no length in a block needs eight bytes')
  }

  /** 00 01 where the count of inputs would stand, which is never zero. */
  skipSegwitMarker(): boolean {
    if (this.#bytes[this.offset] !== 0x00) return false
    this.take(2)
    return true
  }

  end() {
    if (this.offset !== this.#bytes.length) throw new Error('bytes are left over')
  }
}

/** Pairs hashed upwards; the last of an odd row is paired with itself. */
function merkleRoot(txids: readonly string[]): string {
  let row: Buffer[] = txids.map((txid) => Buffer.from(txid, 'hex').reverse())
  while (row.length > 1) {
    const above: Buffer[] = []
    for (const [index, left] of row.entries()) {
      if (index % 2 === 0) above.push(sha256d(left, row[index + 1] ?? left))
    }
    row = above
  }
  const [root] = row
  return root === undefined ? '' : reversedHex(root)
}

function sha256d(...parts: readonly Uint8Array[]): Buffer {
  const inner = createHash('sha256')
  for (const part of parts) inner.update(part)
  return createHash('sha256').update(inner.digest()).digest()
}

/** Hashes are shown with their bytes backwards. */
function reversedHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).reverse().toString('hex')
}
