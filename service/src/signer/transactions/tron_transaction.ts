import { createHash } from 'node:crypto'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { SignedTx, TronIntent } from '../../domain/payouts/intent.ts'
import { hexOfTronAddress } from '../addresses/tron_address.ts'
import type { Keys } from '../derivation.ts'
import { loadInTurn } from '../load_in_turn.ts'
import { refuseToSign } from '../rejections.ts'
import type { TronSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'

/** A day, which is what a node takes at most: https://github.com/tronprotocol/java-tron, Constant.MAXIMUM_TIME_UNTIL_EXPIRATION */
const LIFE_MS_MAX = 86_400_000

/**
 * Megabytes of code, and a third of a second in which the process does nothing else: only for who signs, and best
 * before anybody waits for an answer.
 */
export function loadTronSigning() {
  return loadInTurn(() => import('tronweb'))
}

/** A transfer of TRX, or a call of the token's `transfer`. Deterministic (RFC 6979). */
export async function signTron(
  intent: TronIntent,
  keys: Keys,
  settings: TronSettings | undefined,
): Promise<Outcome<SignedTx, SignRejection>> {
  if (settings === undefined) return refuseToSign('malformed', 'TRON is not configured')
  if (intent.from.purpose === 'change')
    return refuseToSign('malformed', 'intent.from: TRON has no change addresses')
  if (intent.feeLimitSun > settings.feeLimitSunMax)
    return refuseToSign('limit_exceeded', `a fee limit is at most ${settings.feeLimitSunMax} sun`)
  const lifeMs = intent.expirationMs - intent.reference.timeMs
  if (lifeMs <= 0 || lifeMs > LIFE_MS_MAX)
    return refuseToSign('malformed', 'intent.expirationMs is within a day after intent.reference')
  const { utils } = await loadTronSigning()
  const owner = hexOfTronAddress(keys.address('tron', intent.from))
  const unsigned = { visible: false, txID: '', raw_data_hex: '', raw_data: rawDataOf(intent, owner) }
  const rawHex = utils.transaction.txPbToRawDataHex(utils.transaction.txJsonToPb(unsigned)).toLowerCase()
  const txHash = createHash('sha256').update(Buffer.from(rawHex, 'hex')).digest('hex')
  const signature = utils.crypto
    .ECKeySign(Buffer.from(txHash, 'hex'), keys.privateKey('tron', intent.from))
    .replace(/^0x/, '')
    .toLowerCase()
  return accept({ txHash, bytes: wireOf(rawHex, signature) })
}

/** Field 1 is what is signed, field 2 a signature: https://github.com/tronprotocol/protocol, core/Tron.proto, Transaction */
function wireOf(rawHex: string, signature: string): string {
  return [1, 2]
    .map((field, index) => {
      const bytes = index === 0 ? rawHex : signature
      return ((field << 3) | 2).toString(16).padStart(2, '0') + varint(bytes.length / 2) + bytes
    })
    .join('')
}

function varint(value: number): string {
  const low = (value & 0x7f) | (value > 0x7f ? 0x80 : 0)
  return low.toString(16).padStart(2, '0') + (value > 0x7f ? varint(value >>> 7) : '')
}

function rawDataOf(intent: TronIntent, owner: string) {
  const { to, units, token, reference, expirationMs, timestampMs, feeLimitSun } = intent
  const payee = hexOfTronAddress(to)
  // A block is referred to by the end of its number and the middle of its id: https://developers.tron.network/docs/tron-protocol-transaction
  const common = {
    ref_block_bytes: reference.id.slice(12, 16),
    ref_block_hash: reference.id.slice(16, 32),
    expiration: expirationMs,
    timestamp: timestampMs,
  }
  const contract = (type: string, value: object) => ({
    contract: [{ type, parameter: { value, type_url: `type.googleapis.com/protocol.${type}` } }],
    ...common,
  })
  if (token === null) {
    const amount = exactNumber(units)
    return contract('TransferContract', { owner_address: owner, to_address: payee, amount })
  }
  const call = {
    owner_address: owner,
    contract_address: hexOfTronAddress(token),
    data: transferData(payee, units),
  }
  return { ...contract('TriggerSmartContract', call), fee_limit: exactNumber(feeLimitSun) }
}

/** All TRX there are, in sun, are a number that is exact. */
function exactNumber(units: bigint): number {
  if (units > BigInt(Number.MAX_SAFE_INTEGER)) throw new Error(`${units} sun are more than there are`)
  return Number.parseInt(units.toString(), 10)
}

/** keccak256("transfer(address,uint256)"), first four bytes. */
const TRANSFER = 'a9059cbb'

function transferData(payeeHex: string, units: bigint): string {
  return TRANSFER + payeeHex.slice(2).padStart(64, '0') + units.toString(16).padStart(64, '0')
}
