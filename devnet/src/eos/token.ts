import { keys, readAccount, readBalance, readToken } from './entries.ts'
import { assertion } from './refusal.ts'
import type { Scene } from './scene.ts'

/** Of a quantity: `1.0000 EOS` is 10000 of `4,EOS`. */
type Asset = { readonly units: bigint; readonly code: string; readonly precision: number }

const MEMO_BYTES_MAX = 256
const QUANTITY_BEYOND = 2n ** 62n

/** https://github.com/AntelopeIO/reference-contracts/blob/main/contracts/eosio.token/src/eosio.token.cpp, check by check. */
export function runToken(scene: Scene): void {
  if (scene.action.name !== 'transfer') throw assertion(`${scene.action.name} is left out of this simulator`)
  transfer(scene)
}

function transfer(scene: Scene): void {
  const { from, to, quantity, memo } = scene.params() as Record<'from' | 'to' | 'quantity' | 'memo', string>
  check(from !== to, 'cannot transfer to self')
  scene.requireAuth(from)
  check(readAccount(scene.draft, to) !== undefined, 'to account does not exist')
  const asset = readAsset(quantity)
  const token = readToken(scene.draft, scene.action.account, asset.code)
  if (token === undefined) throw assertion('unable to find key')
  scene.notify(from)
  scene.notify(to)
  check(asset.units < QUANTITY_BEYOND, 'invalid quantity')
  check(asset.units > 0n, 'must transfer positive quantity')
  check(asset.precision === token.precision, 'symbol precision mismatch')
  check(Buffer.byteLength(memo) <= MEMO_BYTES_MAX, 'memo has more than 256 bytes')
  subtract(scene, from, asset)
  add(scene, to, asset)
}

function readAsset(quantity: string): Asset {
  const [amount = '', code = ''] = quantity.split(' ')
  const [, decimals = ''] = amount.split('.')
  return { units: BigInt(amount.replace('.', '')), code, precision: decimals.length }
}

export function writeAsset(units: bigint, precision: number, code: string): string {
  const digits = String(units).padStart(precision + 1, '0')
  const whole = digits.slice(0, digits.length - precision)
  return `${precision === 0 ? whole : `${whole}.${digits.slice(-precision)}`} ${code}`
}

function check(isTrue: boolean, otherwise: string): void {
  if (!isTrue) throw assertion(otherwise)
}

function subtract(scene: Scene, owner: string, { units, code }: Asset): void {
  const held = balanceOf(scene, owner, code)
  if (held === undefined) throw assertion('no balance object found')
  check(held.units >= units, 'overdrawn balance')
  setBalance(scene, owner, code, held.units - units)
}

function add(scene: Scene, owner: string, { units, code }: Asset): void {
  setBalance(scene, owner, code, (balanceOf(scene, owner, code)?.units ?? 0n) + units)
}

function balanceOf(scene: Scene, owner: string, code: string) {
  return readBalance(scene.draft, scene.action.account, owner, code)
}

function setBalance(scene: Scene, owner: string, code: string, units: bigint): void {
  scene.draft.set(keys.balance(scene.action.account, owner, code), { units })
}
