import type { Chance } from '../../test/harness/chance.ts'
import { OWN_ACCOUNT, ownTag, paidIn } from './own_addresses.ts'

/** What `trace_api/get_block` answers, as JSON text: as long as the block may be undone, and afterwards. */
export type EosBlock = { readonly hash: string; readonly pending: string; readonly irreversible: string }

/**
 * 3.24 million transactions on 2 November 2019 were 41.5 % fewer than on the busy days before
 * (https://m.0daily.cn/en/post/5142271): these had 32 in each of their 172,800 blocks. It is quieter now.
 */
const TRANSACTIONS = 40

type Json = Record<string, unknown>
type Place = { readonly height: number; readonly hash: string; readonly time: string }

/**
 * A block as mainnet had them when it was busy: transfers of EOS and of other tokens, each traced for its contract, for who
 * pays and for who is paid; games that pay out; calls of contracts that move nothing; some that failed.
 */
export function makeEosBlock(chance: Chance, parentHash: string, height: number): EosBlock {
  const hash = height.toString(16).padStart(8, '0') + hex(chance, 28)
  const time = new Date(1_800_000_000_000 + height * 500).toISOString().slice(0, -1)
  const place = { height, hash, time }
  const ours = paidIn(height).map((index) =>
    transfer(chance, 'eosio.token', OWN_ACCOUNT.EOS, String(ownTag(index))),
  )
  const others = Array.from({ length: TRANSACTIONS - ours.length }, () => someActions(chance))
  const transactions = chance
    .shuffled([...others, ...ours])
    .map((actions) => transactionOf(chance, actions, place))
  const block = {
    id: hash,
    number: height,
    previous_id: parentHash,
    timestamp: `${time}Z`,
    producer: 'eosnationftw',
    transaction_mroot: hex(chance, 32),
    action_mroot: hex(chance, 32),
    schedule_version: 0,
    transactions,
  }
  return {
    hash,
    pending: JSON.stringify({ ...block, status: 'pending' }),
    irreversible: JSON.stringify({ ...block, status: 'irreversible' }),
  }
}

function someActions(chance: Chance): readonly Json[] {
  const dice = chance.below(100)
  const somebody = account(chance)
  if (dice < 40) return transfer(chance, 'eosio.token', somebody, String(chance.below(2 ** 31)))
  if (dice < 65) return transfer(chance, account(chance), somebody, 'a note in words')
  if (dice < 80) {
    const bet = transfer(chance, 'eosio.token', somebody, hex(chance, 40))
    return [...bet, ...calls(chance), ...transfer(chance, 'eosio.token', account(chance), 'you won')]
  }
  return calls(chance)
}

function transfer(chance: Chance, contract: string, to: string, memo: string): readonly Json[] {
  const from = account(chance)
  const units = Buffer.alloc(8)
  units.writeUInt32LE(chance.between(1, 2 ** 31))
  const symbol = contract === 'eosio.token' ? '04454f5300000000' : '0455534454000000'
  const text = Buffer.from(memo)
  const data = `${hexOf(from)}${hexOf(to)}${units.toString('hex')}${symbol}${text.length.toString(16).padStart(2, '0')}${text.toString('hex')}`
  const params = { from, to, quantity: `${chance.below(100_000)}.0000 EOS`, memo }
  return [contract, from, to].map((receiver) => action(chance, receiver, contract, 'transfer', data, params))
}

function calls(chance: Chance): readonly Json[] {
  const contract = account(chance)
  return Array.from({ length: 2 }, () => action(chance, contract, contract, 'mine', hex(chance, 60), null))
}

function action(
  chance: Chance,
  receiver: string,
  contract: string,
  name: string,
  data: string,
  params: Json | null,
): Json {
  return {
    global_sequence: String(chance.between(2 ** 38, 2 ** 39)),
    receiver,
    account: contract,
    action: name,
    authorization: [{ account: account(chance), permission: 'active' }],
    data,
    return_value: '',
    ...(params !== null && { params }),
  }
}

function transactionOf(chance: Chance, actions: readonly Json[], { height, hash, time }: Place): Json {
  const isOurs = actions.some(({ receiver }) => receiver === OWN_ACCOUNT.EOS)
  return {
    id: hex(chance, 32),
    block_num: height,
    block_time: time,
    producer_block_id: hash,
    actions,
    status: isOurs || chance.below(100) < 95 ? 'executed' : 'soft_fail',
    cpu_usage_us: chance.between(100, 2_000),
    net_usage_words: 16,
    signatures: [`SIG_K1_${hex(chance, 47)}`],
    transaction_header: {
      expiration: time.slice(0, 19),
      ref_block_num: chance.below(65_536),
      ref_block_prefix: chance.below(2 ** 31),
      max_net_usage_words: 0,
      max_cpu_usage_ms: 0,
      delay_sec: 0,
    },
  }
}

const LETTERS = '.12345abcdefghijklmnopqrstuvwxyz'

/** Twelve letters, none of which is a dot. */
function account(chance: Chance): string {
  return Array.from({ length: 12 }, () => LETTERS.charAt(chance.between(1, 31))).join('')
}

/** Five bits a letter, the first one highest; https://docs.antelope.io/docs/latest/guides/accounts. Of at most twelve. */
function hexOf(name: string): string {
  const bits = [...name.padEnd(12, '.')].reduce(
    (sum, letter) => (sum << 5n) | BigInt(LETTERS.indexOf(letter)),
    0n,
  )
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(bits << 4n)
  return bytes.toString('hex')
}

function hex(chance: Chance, count: number): string {
  return chance.bytes(count).toString('hex')
}
