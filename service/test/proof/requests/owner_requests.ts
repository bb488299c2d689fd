import { type Entry, text } from './request.ts'
import { type Maker, type Makers, note, plain, type Right } from './right.ts'

/**
 * What ends the session that everything else is said with, or needs a link out of a mail: only refused here
 * (`account.test.ts` does it).
 */
export const onlyRefused: readonly string[] = [
  'signIn',
  'signOut',
  'signOutEverywhere',
  'endSession',
  'agreeToEmailChange',
  'stopEmailChange',
]

type Parts = Parameters<typeof plain>[1]

const asOwner =
  (what: string, parts: Parts = {}, more: Partial<Right> = {}): Maker =>
  ({ owner }) => {
    const headers = [
      ['Cookie', owner.cookie],
      ['Origin', owner.origin],
    ] as const
    return plain(what, { ...parts, headers }, more)
  }

const either = { expected: 'either' } as const
const refused = { expected: 'refusal' } as const
const noToken: readonly Entry[] = [['token', text('A'.repeat(43))]]

const withKey =
  (what: string): Maker =>
  (known, chance) => {
    const id = known.owner.keys.length > 0 ? chance.pick(known.owner.keys) : 'ck_00000000000000000000'
    return asOwner(what, { path: { key_id: id } }, either)(known, chance)
  }

const withWebhook =
  (what: string, body: readonly Entry[] = []): Maker =>
  (known, chance) => {
    const id = known.owner.webhooks.length > 0 ? chance.pick(known.owner.webhooks) : 'we_00000000'
    return asOwner(what, { path: { endpoint_id: id }, body }, either)(known, chance)
  }

const looks = {
  getAccount: 'the account',
  listSessions: 'its sessions',
  getNotifications: 'its preferences',
  listKeys: 'its keys',
  listWebhooks: 'its receivers',
  listWebhookSecrets: 'its secrets',
  listAccountDeliveries: 'what was sent',
  listAccountOrders: 'its orders',
  exportOrders: 'its orders, as CSV',
  listAudit: 'its audit log',
} as const

/** What an owner does in a browser. */
export const ownerRequests: Makers = {
  ...Object.fromEntries(
    Object.entries(looks).map(([id, what]) => [id, { share: 0.6, make: asOwner(what) }] as const),
  ),
  setNotifications: {
    share: 0.6,
    make: asOwner('preferences', {
      body: [
        ['emails', text('all')],
        ['muted', '[]'],
      ],
    }),
  },
  createKey: {
    share: 0.6,
    make: (known, chance) =>
      asOwner(
        'a key',
        { body: [['label', text('generated')]] },
        {
          // An account has a hundred live ones at most.
          expected: known.owner.keys.length < 80 ? 'success' : 'either',
          learn: ({ json }) => note(known.owner.keys, json.data.key_id),
        },
      )(known, chance),
  },
  rotateKey: { share: 0.6, make: withKey('another secret') },
  revokeKey: { share: 0.6, make: withKey('the end of a key') },
  createWebhook: {
    share: 0.6,
    make: (known, chance) =>
      asOwner(
        'a receiver',
        { body: [['url', text(`http://127.0.0.1:9/${chance.below(1_000_000)}`)]] },
        {
          // An account has ten at most.
          expected: known.owner.webhooks.length < 3 ? 'success' : 'either',
          learn: ({ json }) => note(known.owner.webhooks, json.data.endpoint_id),
        },
      )(known, chance),
  },
  switchWebhook: { share: 0.6, make: withWebhook('a receiver, switched', [['enabled', 'true']]) },
  deleteWebhook: { share: 0.6, make: withWebhook('the end of a receiver') },
  rotateWebhookSecret: { share: 0.6, make: asOwner('another secret', {}, either) },
  askForSignInLink: {
    share: 0.6,
    make: (known, chance) => {
      const email = text(`somebody${chance.below(1_000)}@example.test`)
      return asOwner('a link', { body: [['email', email]] }, either)(known, chance)
    },
  },
  askEmailChange: {
    share: 0.6,
    make: asOwner('another address', { body: [['email', text('new@example.test')]] }, either),
  },
  cancelEmailChange: { share: 0.6, make: asOwner('no other address', {}, either) },
  signIn: { share: 0.6, make: asOwner('a link of nobody', { body: noToken }, refused) },
  agreeToEmailChange: { share: 0.6, make: asOwner('a link of nobody', { body: noToken }, refused) },
  stopEmailChange: { share: 0.6, make: asOwner('a link of nobody', { body: noToken }, refused) },
  endSession: {
    share: 0.6,
    make: asOwner('a session of nobody', { path: { session_id: 'se_0000000000000000' } }, refused),
  },
  signOut: { share: 0.6, make: () => plain('nobody’s session', {}, refused) },
  signOutEverywhere: { share: 0.6, make: () => plain('nobody’s sessions', {}, refused) },
}
