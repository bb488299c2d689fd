import { encodeAction } from './abis.ts'
import {
  type Authority,
  type ContractKind,
  type Forwarding,
  keys,
  OUTSIDER_PREFIX,
  readAccount,
} from './entries.ts'
import { assertion, Refusal } from './refusal.ts'
import type { Scene } from './scene.ts'
import { runToken } from './token.ts'

export const TOKEN_CONTRACT = 'eosio.token'
export const SYSTEM_ACCOUNT = 'eosio'

/** What each kind of contract does, in place of its WebAssembly. */
export const contracts: Readonly<Record<ContractKind, (scene: Scene) => void>> = {
  token: (scene) => {
    if (isOwn(scene)) runToken(scene)
  },
  system: (scene) => {
    if (isOwn(scene)) runSystem(scene)
  },
  // Says that somebody transferred something, and moves nothing.
  liar: (scene) => {
    if (!isOwn(scene) || scene.action.name !== 'transfer') return
    const { from, to } = scene.params()
    scene.notify(String(from))
    scene.notify(String(to))
  },
  // Passes the notification of a true transfer on to somebody whom it did not pay.
  forwarder: (scene) => {
    if (isOwn(scene)) return setForwarding(scene)
    const forwarding = scene.draft.get(keys.forwarding(scene.receiver)) as Forwarding | undefined
    if (scene.action.name === 'transfer' && forwarding !== undefined) scene.notify(forwarding.to)
  },
  // Pays out of its own purse with an inline action: true money, in a transaction whose own action is no transfer.
  payer: (scene) => {
    if (!isOwn(scene) || scene.action.name !== 'pay') return
    scene.inline({
      account: TOKEN_CONTRACT,
      name: 'transfer',
      authorization: [{ actor: scene.receiver, permission: 'active' }],
      data: encodeAction('token', 'transfer', { from: scene.receiver, ...scene.params() }),
    })
  },
  // Takes no money: a transfer to it fails, as a contract may decide.
  refuser: (scene) => {
    if (!isOwn(scene)) throw assertion('this account takes no transfers')
  },
}

function isOwn({ receiver, action }: Scene): boolean {
  return receiver === action.account
}

function setForwarding(scene: Scene): void {
  if (scene.action.name !== 'forward') return
  scene.draft.set(keys.forwarding(scene.receiver), { to: String(scene.params().to) })
}

function runSystem(scene: Scene): void {
  if (scene.action.name !== 'newaccount')
    throw new Refusal('action_validate_exception', `${scene.action.name} is left out of this simulator`)
  const { creator, name, owner, active } = scene.params() as {
    creator: string
    name: string
    owner: Authority
    active: Authority
  }
  scene.requireAuth(creator)
  if (readAccount(scene.draft, name) !== undefined)
    throw new Refusal(
      'account_name_exists_exception',
      `Cannot create account named ${name}, as that name is already taken`,
    )
  if (!/^[a-z1-5]{12}$/.test(name) && creator !== SYSTEM_ACCOUNT)
    throw assertion('only suffix may create this account')
  if (name.startsWith(OUTSIDER_PREFIX)) throw assertion(`names with ${OUTSIDER_PREFIX} are all taken`)
  scene.draft.set(keys.account(name), { createdAtMs: scene.timeMs, owner, active })
}
