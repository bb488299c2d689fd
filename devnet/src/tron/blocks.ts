import { secp256k1 } from '@noble/curves/secp256k1.js'
import type { OpenBlock } from '../simulated/chain.ts'
import { addressOfPublicKey, hexOf, sha256Hex } from './addresses.ts'
import { sign, type TronTransaction } from './decode_transaction.ts'
import { type Header, headerSchema } from './messages.ts'
import { encodeMessage } from './protobuf.ts'

export type Seal = { readonly hash: string; readonly header: Header; readonly signature: string }

/** The main network has 27, who take turns. */
const WITNESSES = 27

/** Every chain of this simulator begins with it, so that it is known by it. */
export const genesisHeader: Header = { parentHash: sha256Hex(Buffer.from('cambist devnet').toString('hex')) }
export const GENESIS_ID = blockId(genesisHeader)

export function sealBlock(
  block: Pick<
    OpenBlock<{ entry: unknown; tx: TronTransaction; result: unknown; seal: Seal }>,
    'height' | 'parentHash' | 'timeMs' | 'included'
  >,
  stateHash: string,
): Seal {
  if (block.height === 0) return { hash: GENESIS_ID, header: genesisHeader, signature: '' }
  const secretKey = Buffer.from(
    sha256Hex(Buffer.from(`witness ${block.height % WITNESSES}`).toString('hex')),
    'hex',
  )
  const header = {
    timestamp: BigInt(block.timeMs),
    txTrieRoot: treeRoot(block.included.map(({ tx }) => sha256Hex(tx.rawHex + tx.signatures.join('')))),
    parentHash: block.parentHash,
    number: BigInt(block.height),
    witness_address: addressOfPublicKey(secp256k1.getPublicKey(secretKey, false)),
    version: 31n,
    accountStateRoot: stateHash,
  }
  return { hash: blockId(header), header, signature: sign(headerHash(header), secretKey) }
}

function headerHash(header: Header): string {
  return sha256Hex(hexOf(encodeMessage(headerSchema, header)))
}

/** Its first eight bytes are its number: so it tells where it belongs. */
function blockId(header: Header): string {
  return (header.number ?? 0n).toString(16).padStart(16, '0') + headerHash(header).slice(16)
}

/** What a transaction says of the block that it refers to: https://developers.tron.network/docs/tron-protocol-transaction */
export function referenceOf(id: string): { bytes: string; hash: string } {
  return { bytes: id.slice(12, 16), hash: id.slice(16, 32) }
}

function treeRoot(leaves: readonly string[]): string {
  if (leaves.length === 0) return '0'.repeat(64)
  let level = leaves
  while (level.length > 1)
    level = Array.from({ length: Math.ceil(level.length / 2) }, (_, index) => {
      const [left = '', right] = level.slice(index * 2, index * 2 + 2)
      return right === undefined ? left : sha256Hex(left + right)
    })
  return level[0] ?? ''
}
