import {
  Action,
  APIClient,
  APIError,
  Asset,
  Authority,
  Bytes,
  Checksum256,
  Name,
  PackedTransaction,
  PrivateKey,
  Serializer,
  Signature,
  SignedTransaction,
  Transaction,
  type TransactionHeader,
} from '@wharfkit/antelope'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Devnet, startDevnet } from '../src/index.ts'
import { killHard, makeTemporaryFolder, runScript } from './harness.ts'

/**
 * What: the simulated EOS answers the field's own client library as nodeos does, down to the codes of its errors.
 * How: the published client over HTTP; blocks are made when a test says so.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet
let client: APIClient

const start = () => startDevnet({ dataDir: folder.path, networks: ['EOS'], mining: 'manual' })

beforeAll(async () => {
  devnet = await start()
  client = new APIClient({ url: info().rpcUrl })
  await devnet.mine('EOS', 10)
})

afterEach(() => devnet.trouble('EOS', null))

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

function info(of: Pick<Devnet, 'networks'> = devnet) {
  if (of.networks.EOS === undefined) throw new Error('EOS was started')
  return of.networks.EOS
}

type Wallet = { readonly name: string; readonly key: PrivateKey }
const faucet = (): Wallet => ({
  name: info().faucet.account,
  key: PrivateKey.from(info().faucet.privateKey),
})

let opened = 0
/** A new account with a key of its own, and so much EOS on it. */
async function funded(eos = 100): Promise<Wallet> {
  opened += 1
  const name = `customer${String.fromCharCode(97 + Math.floor(opened / 26), 97 + (opened % 26))}aa`
  const key = PrivateKey.generate('K1')
  await devnet.eos.createAccount(name, String(key.toPublic()))
  await devnet.send('EOS', 'EOS', name, BigInt(eos) * 10_000n)
  await devnet.mine('EOS', 1)
  return { name, key }
}

type Transfer = { from: string; to: string; quantity: string; memo: string }

function transfer(from: Wallet, to: string, quantity: string, memo = '', contract = 'eosio.token'): Action {
  const object = { from: from.name, to, quantity, memo }
  const data = Serializer.encode({ object, type: 'transfer', abi: transferAbi })
  return action(from, contract, 'transfer', data.hexString)
}

const transferAbi = {
  structs: [
    {
      name: 'transfer',
      base: '',
      fields: [
        { name: 'from', type: 'name' },
        { name: 'to', type: 'name' },
        { name: 'quantity', type: 'asset' },
        { name: 'memo', type: 'string' },
      ],
    },
  ],
}

function action({ name: actor }: Pick<Wallet, 'name'>, account: string, name: string, data: string): Action {
  return Action.from({ account, name, authorization: [{ actor, permission: 'active' }], data })
}

type Changes = Partial<TransactionHeader> & { signers?: readonly PrivateKey[]; chainId?: string }

/** Signed exactly as it is, with the header that the client library makes of what the node says. */
async function signed(signer: Wallet, actions: Action[], changes: object = {}) {
  const { signers = [signer.key], chainId = info().chainId, ...header } = changes as Changes
  const made = (await client.v1.chain.get_info()).getTransactionHeader(120)
  const transaction = Transaction.from({ ...made, ...header, actions } as Transaction)
  const digest = transaction.signingDigest(chainId)
  return SignedTransaction.from({ ...transaction, signatures: signers.map((key) => key.signDigest(digest)) })
}

/** The error's name, or the status when it was accepted. */
async function submit(tx: SignedTransaction): Promise<string> {
  return client.v1.chain.send_transaction2(tx).then(
    ({ processed }) => processed.receipt?.status ?? 'nothing',
    (error) => {
      if (error instanceof APIError) return error.name
      throw error
    },
  )
}

async function why(tx: SignedTransaction): Promise<string | undefined> {
  return client.v1.chain.push_transaction(tx).then(
    () => 'accepted',
    (error: APIError) => error.details[0]?.message,
  )
}

type Traced = {
  id: string
  status: string
  actions: { global_sequence: number; receiver: string; account: string; action: string; params?: Transfer }[]
}
type TracedBlock = { id: string; number: number; previous_id: string; status: string; transactions: Traced[] }

const traced = (block_num: number) =>
  client.call<TracedBlock>({ path: '/v1/trace_api/get_block', params: { block_num } })

/** What a careful exchange would credit to an account: everything else in the trace is noise or a lie. */
async function credits(to: string, from = 1): Promise<string[]> {
  const { last_irreversible_block_num: last } = await client.v1.chain.get_info()
  const found: string[] = []
  for (let height = from; height <= Number(last); height++) {
    const { transactions } = await traced(height)
    for (const { status, actions } of transactions)
      for (const { account, receiver, action: name, params } of actions) {
        const isTransfer = account === 'eosio.token' && receiver === 'eosio.token' && name === 'transfer'
        if (status === 'executed' && isTransfer && params?.to === to && params.quantity.endsWith(' EOS'))
          found.push(`${params.quantity} ${params.memo}`)
      }
  }
  return found
}

const head = async () => Number((await client.v1.chain.get_info()).head_block_num)
const balance = (address: string) => devnet.balance('EOS', 'EOS', address)
const state = async (tx: SignedTransaction) =>
  String((await client.v1.chain.get_transaction_status(tx.id)).state)

describe('what a client does', () => {
  test('a transfer is signed, sent, seen in its block, and irreversible some blocks later', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [transfer(sender, to, '2.5000 EOS', 'tag 7')])
    const sent = await client.v1.chain.send_transaction2(tx)
    expect(sent.transaction_id).toBe(String(tx.id))
    expect([await state(tx), await balance(to)]).toEqual(['LOCALLY_APPLIED', 0n])
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['IN_BLOCK', 25_000n])
    const [held] = await client.v1.chain.get_currency_balance('eosio.token', to, 'EOS')
    expect(String(held)).toBe('2.5000 EOS')
    expect(String(await client.v1.chain.get_currency_balance('eosio.token', to))).toBe('2.5000 EOS')
    await devnet.mine('EOS', info().reversibleBlocks)
    expect(await state(tx)).toBe('IRREVERSIBLE')
    const { transactions } = await client.v1.chain.get_block((await head()) - info().reversibleBlocks)
    expect(transactions.map(({ id, status }) => [String(id), status])).toEqual([[String(tx.id), 'executed']])
    expect(transactions[0]?.trx.transaction?.id.equals(tx.id)).toBe(true)
  })

  test('a block says its number in its id, names the one before, and is told the same by number and by id', async () => {
    await devnet.mine('EOS', 3)
    const last = await head()
    const [before, block] = [await client.v1.chain.get_block(last - 1), await client.v1.chain.get_block(last)]
    expect(Number(block.id.blockNum)).toBe(last)
    expect(String(block.previous)).toBe(String(before.id))
    expect(String((await client.v1.chain.get_block(block.id)).id)).toBe(String(block.id))
    expect(String((await client.v1.chain.get_block_info(last)).id)).toBe(String(block.id))
    const between = block.timestamp.toMilliseconds() - before.timestamp.toMilliseconds()
    expect([between > 0, between % 500]).toEqual([true, 0])
    expect(
      Signature.from(block.producer_signature).verifyDigest(String(block.id), faucet().key.toPublic()),
    ).toBe(true)
    await expect(client.v1.chain.get_block(last + 1)).rejects.toMatchObject({
      name: 'unknown_block_exception',
    })
    const beyond = traced(last + 1)
    await expect(beyond).rejects.toMatchObject({ response: { status: 404 } })
  })

  test('the last irreversible block is behind the head, and what the trace calls irreversible ends with it', async () => {
    const told = await client.v1.chain.get_info()
    const [last, lib] = [Number(told.head_block_num), Number(told.last_irreversible_block_num)]
    expect(last - lib).toBe(info().reversibleBlocks)
    expect([(await traced(lib)).status, (await traced(lib + 1)).status]).toEqual(['irreversible', 'pending'])
    expect((await traced(lib)).id).toBe(String(told.last_irreversible_block_id))
    expect(String(told.chain_id)).toBe(info().chainId)
  })

  test('an account shows its keys and its EOS, and a name that nobody has is not found', async () => {
    const wallet = await funded(3)
    const account = await client.v1.chain.get_account(wallet.name)
    expect(String(account.core_liquid_balance)).toBe('3.0000 EOS')
    const { required_auth } = account.getPermission('active')
    expect(required_auth.hasPermission(wallet.key.toPublic())).toBe(true)
    const outsider = await client.v1.chain.get_account(await devnet.freshAddress('EOS'))
    expect([outsider.core_liquid_balance ?? null, outsider.permissions.length]).toEqual([null, 2])
    const nobody = client.v1.chain.get_account('nobodyatall1')
    await expect(nobody).rejects.toThrow('Account not found')
    expect(await client.v1.chain.get_currency_balance('eosio.token', 'nobodyatall1')).toEqual([])
  })

  test('the token contract tells its interface and its supply', async () => {
    const { abi } = await client.v1.chain.get_abi('eosio.token')
    const decoded = Transaction.from(
      {
        ...(await client.v1.chain.get_info()).getTransactionHeader(),
        actions: [
          {
            account: 'eosio.token',
            name: 'transfer',
            authorization: [],
            data: { from: 'alice', to: 'bob', quantity: '1.0000 EOS', memo: '' },
          },
        ],
      },
      abi,
    )
    expect(decoded.actions[0]?.data.hexString).toBe(
      transfer({ ...faucet(), name: 'alice' }, 'bob', '1.0000 EOS').data.hexString,
    )
    const raw = await client.v1.chain.get_raw_abi('eosio.token')
    expect(String(raw.account_name)).toBe('eosio.token')
    const stats = await client.v1.chain.get_currency_stats('eosio.token', 'EOS')
    expect(String(stats.EOS?.supply)).toBe('1000000000.0000 EOS')
  })

  test('the keys that a transaction needs are told among those that there are', async () => {
    const sender = await funded()
    const others = [PrivateKey.generate('K1'), sender.key].map((key) => String(key.toPublic()))
    const transaction = (await signed(sender, [transfer(sender, 'devnetfaucet', '1.0000 EOS')])).transaction
    const params = { transaction, available_keys: others }
    const answer = await client.call({ path: '/v1/chain/get_required_keys', params })
    expect(answer).toEqual({ required_keys: [others[1]] })
  })

  test('compressed or not, over each of the three ways, a transaction is the same', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    for (const memo of ['1', '2', '3', '4']) {
      const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS', memo)])
      if (memo === '1') await client.v1.chain.push_transaction(PackedTransaction.fromSigned(tx, 0))
      if (memo === '2') await client.v1.chain.push_transaction(PackedTransaction.fromSigned(tx, 1))
      if (memo === '3') await client.v1.chain.send_transaction(tx)
      if (memo === '4') await client.v1.chain.send_transaction2(tx)
    }
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(40_000n)
  })

  test('two clients at once: sixty transfers all arrive, each once', async () => {
    const to = await devnet.freshAddress('EOS')
    const pair = [await funded(), await funded()]
    const all = pair.map(async (sender) => {
      const txs = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          signed(sender, [transfer(sender, to, '0.1000 EOS', `${index}`)]),
        ),
      )
      expect(new Set(await Promise.all(txs.map(submit)))).toEqual(new Set(['executed']))
    })
    await Promise.all(all)
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(60_000n)
  })
})

describe('what a transaction may be refused for', () => {
  const seconds = (after: number) => async () => {
    const { head_block_time } = await client.v1.chain.get_info()
    return {
      expiration: new Date(head_block_time.toMilliseconds() + after * 1000).toISOString().slice(0, 19),
    }
  }

  test.each<[string, () => Promise<object> | object]>([
    ['expired_tx_exception', seconds(-60)],
    ['tx_exp_too_far_exception', seconds(4_000)],
    ['invalid_ref_block_exception', () => ({ ref_block_prefix: 1 })],
    ['invalid_ref_block_exception', () => ({ ref_block_num: 60_000 })],
    ['unsatisfied_authorization', () => ({ signers: [] })],
    ['unsatisfied_authorization', () => ({ signers: [PrivateKey.generate('K1')] })],
    ['unsatisfied_authorization', () => ({ chainId: '11'.repeat(32) })],
  ])('%s, and it is kept nowhere', async (name, changes) => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')], await changes())
    expect(await submit(tx)).toBe(name)
    expect(await state(tx)).toBe('UNKNOWN')
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['UNKNOWN', 0n])
  })

  test('a signature that is not needed, and one that is there twice, are too many', async () => {
    const sender = await funded()
    const actions = [transfer(sender, await devnet.freshAddress('EOS'), '1.0000 EOS')]
    for (const extra of [PrivateKey.generate('K1'), sender.key])
      expect(await submit(await signed(sender, actions, { signers: [sender.key, extra] }))).toBe(
        'tx_irrelevant_sig',
      )
  })

  test.each<[string, (sender: Wallet, to: string) => Action]>([
    ['overdrawn balance', (sender, to) => transfer(sender, to, '100.0001 EOS')],
    ['must transfer positive quantity', (sender, to) => transfer(sender, to, '0.0000 EOS')],
    ['must transfer positive quantity', (sender, to) => transfer(sender, to, '-1.0000 EOS')],
    ['symbol precision mismatch', (sender, to) => transfer(sender, to, '1.000 EOS')],
    ['unable to find key', (sender, to) => transfer(sender, to, '1.0000 NONE')],
    ['no balance object found', (sender, to) => transfer(sender, to, '1.0000 SYS')],
    ['cannot transfer to self', (sender) => transfer(sender, sender.name, '1.0000 EOS')],
    ['to account does not exist', (sender) => transfer(sender, 'nobodyatall1', '1.0000 EOS')],
    ['memo has more than 256 bytes', (sender, to) => transfer(sender, to, '1.0000 EOS', 'é'.repeat(129))],
    ['this account takes no transfers', (sender) => transfer(sender, info().contracts.refuser, '1.0000 EOS')],
    [
      'datastream attempted to read past the end',
      (sender) => action(sender, 'eosio.token', 'transfer', '00'),
    ],
  ])('the contract says: %s', async (message, make) => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [make(sender, to)])
    expect(await why(tx)).toBe(`assertion failure with message: ${message}`)
    expect(await submit(tx)).toBe('eosio_assert_message_exception')
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(sender.name), await balance(to)]).toEqual([
      'UNKNOWN',
      1_000_000n,
      0n,
    ])
  })

  test('a memo of 256 bytes still fits', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('EOS')
    expect(await submit(await signed(sender, [transfer(sender, to, '1.0000 EOS', 'é'.repeat(128))]))).toBe(
      'executed',
    )
  })

  test('an account may ask for two keys, and for the permission of another account', async () => {
    const [first, second, owner] = [PrivateKey.generate('K1'), PrivateKey.generate('K1'), await funded()]
    const both = [first, second].map((key) => ({ key: String(key.toPublic()), weight: 1 }))
    const permission = { actor: owner.name, permission: 'active' }
    const shared = Authority.from({ threshold: 2, keys: both })
    const lent = Authority.from({ threshold: 1, accounts: [{ permission, weight: 1 }] })
    const { abi } = await client.v1.chain.get_abi('eosio')
    const object = { creator: 'devnetfaucet', name: 'sharedbytwo1', owner: lent, active: shared }
    const data = Serializer.encode({ object, type: 'newaccount', abi: abi ?? {} }).hexString
    await submit(await signed(faucet(), [action(faucet(), 'eosio', 'newaccount', data)]))
    await devnet.send('EOS', 'EOS', 'sharedbytwo1', 100_000n)
    await devnet.mine('EOS', 1)
    const spender = { name: 'sharedbytwo1', key: first }
    const attempt = async (...signers: PrivateKey[]) =>
      submit(
        await signed(spender, [transfer(spender, owner.name, '1.0000 EOS', `${signers.length}`)], {
          signers,
        }),
      )
    expect(await attempt(first)).toBe('unsatisfied_authorization')
    expect(await attempt(first, second)).toBe('executed')
    expect(await attempt(owner.key), 'who owns it may do all that it may').toBe('executed')
  })

  test("nobody spends another's money, acts for who is none, or calls what is none", async () => {
    const [thief, victim] = [await funded(), await funded()]
    const stolen = transfer(victim, thief.name, '1.0000 EOS')
    const asThief = Action.from({ ...stolen, authorization: [{ actor: thief.name, permission: 'active' }] })
    expect(await submit(await signed(thief, [stolen]))).toBe('unsatisfied_authorization')
    expect(await submit(await signed(thief, [asThief]))).toBe('missing_auth_exception')
    const asNobody = action({ name: 'nobodyatall1' }, 'eosio.token', 'transfer', '')
    expect(await submit(await signed(thief, [asNobody]))).toBe('transaction_exception')
    const toNobody = action(thief, 'nobodyatall1', 'transfer', '')
    expect(await submit(await signed(thief, [toNobody]))).toBe('action_validate_exception')
    expect(await submit(await signed(thief, []))).toBe('tx_no_action')
  })

  test('all of a transaction happens or nothing', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [
      transfer(sender, to, '60.0000 EOS'),
      transfer(sender, to, '60.0000 EOS'),
    ])
    expect(await submit(tx)).toBe('eosio_assert_message_exception')
    await devnet.mine('EOS', 1)
    expect([await balance(sender.name), await balance(to)]).toEqual([1_000_000n, 0n])
  })

  test('the same bytes again are a duplicate, while they wait and when they are in a block', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')])
    expect([await submit(tx), await submit(tx)]).toEqual(['executed', 'tx_duplicate'])
    await devnet.mine('EOS', 1)
    await expect(client.v1.chain.send_transaction2(tx)).rejects.toMatchObject({
      code: 3_040_008,
      response: { status: 409 },
    })
    expect(await balance(to)).toBe(10_000n)
  })

  test('what fails while it runs is told in an answer with a trace, or as an error, as the client likes it', async () => {
    const sender = await funded()
    const tx = await signed(sender, [transfer(sender, 'devnetfaucet', '100.0001 EOS')])
    const told = client.v1.chain.send_transaction2(tx)
    await expect(told).rejects.toMatchObject({ code: 3_050_003, response: { status: 202 } })
    const bare = client.v1.chain.send_transaction2(tx, { return_failure_trace: false })
    const details = [{ message: 'assertion failure with message: overdrawn balance' }]
    const what = 'eosio_assert_message assertion failure'
    await expect(bare).rejects.toMatchObject({ error: { what, details }, response: { status: 500 } })
  })

  test('context free data is signed with the transaction', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')])
    const data = Serializer.encode({ object: ['abcd'], type: 'bytes[]' })
    const packed = PackedTransaction.fromSigned(tx, 0)
    const changed = PackedTransaction.from({ ...packed, packed_context_free_data: data })
    const refused = client.v1.chain.push_transaction(changed)
    await expect(refused).rejects.toMatchObject({
      name: 'unsatisfied_authorization',
      response: { status: 401 },
    })
    const bytes = Bytes.from(info().chainId)
      .appending(packed.packed_trx)
      .appending(Checksum256.hash(data).array)
    const signatures = [sender.key.signDigest(Checksum256.hash(bytes))]
    await client.v1.chain.push_transaction(PackedTransaction.from({ ...changed, signatures }))
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(10_000n)
  })

  test('bytes that are no transaction, and paths that are none, are refused as nodeos refuses them', async () => {
    const params = { signatures: [], compression: 0, packed_context_free_data: '', packed_trx: 'abcdef' }
    const pushed = client.call({ path: '/v1/chain/push_transaction', params })
    await expect(pushed).rejects.toMatchObject({ code: 3_010_010, name: 'packed_transaction_type_exception' })
    const sender = await funded()
    const packed = PackedTransaction.fromSigned(await signed(sender, []), 0)
    const longer = PackedTransaction.from({ ...packed, packed_trx: packed.packed_trx.appending('00') })
    await expect(client.v1.chain.push_transaction(longer)).rejects.toMatchObject({ code: 3_010_010 })
    const broken = { ...JSON.parse(JSON.stringify(packed)), signatures: ['SIG_K1_nonsense'] }
    const answer = client.call({ path: '/v1/chain/push_transaction', params: broken })
    await expect(answer).rejects.toMatchObject({ response: { status: 500, json: { code: 500 } } })
    await expect(client.call({ path: '/v1/chain/no_such_thing' })).rejects.toMatchObject({
      response: { status: 404 },
    })
  })
})

describe('what a deposit looks like, and what only looks like one', () => {
  const settle = () => devnet.mine('EOS', info().reversibleBlocks + 1)

  /** A true deposit beside the false one: who credits nothing at all would pass as well. */
  async function trueDeposit(to: string): Promise<string> {
    await devnet.send('EOS', 'EOS', to, 70_000n, 1, 'true')
    await settle()
    return '7.0000 EOS true'
  }

  test('a transfer stands three times in the trace, for the contract and both sides, with numbers that rise', async () => {
    const [sender, to] = [await funded(), await funded(1)]
    const from = await head()
    const tx = await signed(sender, [transfer(sender, to.name, '1.0000 EOS', 'once')])
    await submit(tx)
    await devnet.mine('EOS', 1)
    const { transactions } = await traced(await head())
    const [onblock, found] = transactions
    expect(onblock?.actions).toMatchObject([{ account: 'eosio', action: 'onblock' }])
    expect(found).toMatchObject({ id: String(tx.id), status: 'executed' })
    expect(found?.actions.map(({ receiver }) => receiver)).toEqual(['eosio.token', sender.name, to.name])
    const params = { from: sender.name, to: to.name, quantity: '1.0000 EOS', memo: 'once' }
    for (const each of found?.actions ?? [])
      expect(each).toMatchObject({ account: 'eosio.token', action: 'transfer', params })
    const numbers = transactions.flatMap(({ actions }) => actions.map((each) => each.global_sequence))
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
    const path = '/v1/trace_api/get_transaction_trace'
    expect(await client.call({ path, params: { id: tx.id } })).toEqual(found)
    await settle()
    expect(await credits(to.name, from + 1)).toEqual(['1.0000 EOS once'])
  })

  test('two transfers in one transaction, and the same transfer twice, are two deposits', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const from = await head()
    const twice = transfer(sender, to, '1.0000 EOS', 'again')
    await submit(await signed(sender, [twice, twice]))
    await settle()
    expect(await credits(to, from)).toEqual(['1.0000 EOS again', '1.0000 EOS again'])
    expect(await balance(to)).toBe(20_000n)
  })

  test('a contract pays with an inline action: a true deposit, though the transaction says something else', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const from = await head()
    const { payer } = info().contracts
    await devnet.send('EOS', 'EOS', payer, 50_000n)
    const { abi } = await client.v1.chain.get_abi(payer)
    const object = { to, quantity: Asset.from('5.0000 EOS'), memo: 'inline' }
    const data = Serializer.encode({ object, type: 'pay', abi: abi ?? {} }).hexString
    const tx = await signed(sender, [action(sender, payer, 'pay', data)])
    expect(await submit(tx)).toBe('executed')
    await settle()
    expect([await credits(to, from), await balance(to)]).toEqual([['5.0000 EOS inline'], 50_000n])
  })

  test.each<[string, (sender: Wallet, to: string) => Action | Promise<Action>]>([
    [
      'the EOS of another contract with the same code',
      (_, to) => transfer(faucet(), to, '9.0000 EOS', 'false', info().contracts.fakeToken),
    ],
    [
      'a contract that only says that somebody transferred something',
      (sender, to) =>
        transfer({ ...sender, name: faucet().name }, to, '9.0000 EOS', 'false', info().contracts.liar),
    ],
    [
      'an action of an account without any contract',
      (sender, to) => transfer(sender, to, '9.0000 EOS', 'false', 'devnetfaucet'),
    ],
    ['another token of the true contract', (_, to) => transfer(faucet(), to, '9.0000 SYS', 'false')],
    [
      "the notification of a transfer to somebody else, passed on by that one's contract",
      async (sender, to) => {
        const { forwarder } = info().contracts
        const data = Serializer.encode({ object: Name.from(to) }).hexString
        await submit(await signed(sender, [action(sender, forwarder, 'forward', data)]))
        return transfer(sender, forwarder, '9.0000 EOS', 'false')
      },
    ],
  ])('no deposit: %s', async (_, make) => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const from = await head()
    const made = await make(sender, to)
    const actor = String(made.authorization[0]?.actor)
    const signer = actor === faucet().name ? faucet() : sender
    const lie = Action.from({ ...made, authorization: [{ actor: signer.name, permission: 'active' }] })
    const tx = await signed(signer, [lie])
    expect(await submit(tx)).toBe('executed')
    const truth = await trueDeposit(to)
    expect([await credits(to, from), await balance(to)]).toEqual([[truth], 70_000n])
    const found = await client.v1.chain.get_transaction_status(tx.id)
    expect(String(found.state), 'it is in a block').toBe('IRREVERSIBLE')
  })

  test('the forwarded notification does reach the one who was not paid', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const { forwarder } = info().contracts
    const data = Serializer.encode({ object: Name.from(to) }).hexString
    const tx = await signed(sender, [
      action(sender, forwarder, 'forward', data),
      transfer(sender, forwarder, '9.0000 EOS'),
    ])
    await submit(tx)
    await devnet.mine('EOS', 1)
    const found = (await traced(await head())).transactions.find(({ id }) => id === String(tx.id))
    expect(found?.actions.map(({ receiver }) => receiver)).toEqual([
      forwarder,
      'eosio.token',
      sender.name,
      forwarder,
      to,
    ])
  })

  test('a delayed transaction whose money is gone when its time comes is in a block, and did nothing', async () => {
    const [sender, to] = [await funded(10), await devnet.freshAddress('EOS')]
    const from = await head()
    const late = await signed(sender, [transfer(sender, to, '9.0000 EOS', 'false')], { delay_sec: 2 })
    expect(await submit(late)).toBe('delayed')
    await submit(await signed(sender, [transfer(sender, 'devnetfaucet', '10.0000 EOS')]))
    await devnet.mine('EOS', 6)
    const heights = Array.from({ length: (await head()) - from }, (__, index) => from + 1 + index)
    const blocks = await Promise.all(heights.map(traced))
    const found = blocks.flatMap(({ transactions }) => transactions).find(({ id }) => id === String(late.id))
    expect(found).toMatchObject({ status: 'hard_fail' })
    expect(found?.actions.map(({ receiver }) => receiver)).toContain(to)
    const truth = await trueDeposit(to)
    expect([await credits(to, from), await balance(to)]).toEqual([[truth], 70_000n])
    expect(await state(late)).toBe('UNKNOWN')
  })

  test('a delayed transaction that succeeds is a deposit from the block on in which it was executed', async () => {
    const [sender, to] = [await funded(10), await devnet.freshAddress('EOS')]
    const from = await head()
    const late = await signed(sender, [transfer(sender, to, '9.0000 EOS', 'late')], { delay_sec: 2 })
    expect(await submit(late)).toBe('delayed')
    await devnet.mine('EOS', 2)
    expect(await balance(to)).toBe(0n)
    await devnet.mine('EOS', 4)
    expect(await balance(to)).toBe(90_000n)
    await settle()
    expect(await credits(to, from)).toEqual(['9.0000 EOS late'])
  })
})

describe('blocks that are undone', () => {
  test('a transfer of a reversible block is gone, waits, and comes again in another block', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')])
    await submit(tx)
    await devnet.mine('EOS', 2)
    const before = await client.v1.chain.get_block(await head())
    expect([await state(tx), await balance(to)]).toEqual(['IN_BLOCK', 10_000n])
    await devnet.reorg('EOS', 3)
    expect([await state(tx), await balance(to)]).toEqual(['LOCALLY_APPLIED', 0n])
    expect(await head()).toBe(Number(before.block_num) + 1)
    const instead = await client.v1.chain.get_block(before.block_num)
    expect(String(instead.id)).not.toBe(String(before.id))
    const gone = client.v1.chain.get_block(before.id)
    await expect(gone).rejects.toMatchObject({ name: 'unknown_block_exception' })
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['IN_BLOCK', 10_000n])
  })

  test('a transfer that names an undone block never comes again', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const { head_block_num, head_block_id } = await client.v1.chain.get_info()
    const ref_block_prefix = Buffer.from(head_block_id.array).readUInt32LE(8)
    const ref_block_num = Number(head_block_num) & 0xffff
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')], { ref_block_num, ref_block_prefix })
    expect(await submit(tx)).toBe('executed')
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(10_000n)
    await devnet.reorg('EOS', 2)
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['UNKNOWN', 0n])
    expect(await submit(tx)).toBe('invalid_ref_block_exception')
  })

  test('a transfer that expires before it gets into a block again never does', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    const { head_block_time } = await client.v1.chain.get_info()
    const expiration = new Date(head_block_time.toMilliseconds() + 3_000).toISOString().slice(0, 19)
    const tx = await signed(sender, [transfer(sender, to, '1.0000 EOS')], { expiration })
    expect(await submit(tx)).toBe('executed')
    await devnet.mine('EOS', 4)
    expect(await balance(to)).toBe(10_000n)
    // One block more than before, each half a second later: that is past its expiration.
    await devnet.reorg('EOS', 5)
    await devnet.reorg('EOS', 5)
    await devnet.reorg('EOS', 5)
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['UNKNOWN', 0n])
    expect(await submit(tx)).toBe('expired_tx_exception')
  })

  test('an irreversible block is final', async () => {
    const lib = Number((await client.v1.chain.get_info()).last_irreversible_block_num)
    const { id } = await traced(lib)
    const tooDeep = info().reversibleBlocks + 1
    await expect(devnet.reorg('EOS', tooDeep)).rejects.toThrow('irreversible')
    await devnet.reorg('EOS', tooDeep - 1)
    expect([(await traced(lib)).id, (await traced(lib)).status]).toEqual([id, 'irreversible'])
  })
})

describe('troubles', () => {
  async function prepared() {
    const [sender, to] = [await funded(), await devnet.freshAddress('EOS')]
    return { to, tx: await signed(sender, [transfer(sender, to, '1.0000 EOS')]) }
  }

  test.each(['tx_cpu_usage_exceeded', 'tx_net_usage_exceeded', 'deadline_exception'])(
    '%s is refused, and the same bytes get in later',
    async (failWith) => {
      const { tx, to } = await prepared()
      devnet.trouble('EOS', { submits: [{ failWith }, { failWith }] })
      expect(await submit(tx)).toBe(failWith)
      await expect(client.v1.chain.push_transaction(tx)).rejects.toMatchObject({ name: failWith })
      expect(await submit(tx)).toBe('executed')
      await devnet.mine('EOS', 1)
      expect(await balance(to)).toBe(10_000n)
    },
  )

  test('a transaction gets into its block as failed, and pays nobody', async () => {
    const { tx, to } = await prepared()
    devnet.trouble('EOS', { submits: [{ failWith: 'hard_fail' }] })
    expect(await submit(tx)).toBe('executed')
    await devnet.mine('EOS', 1)
    const { transactions } = await client.v1.chain.get_block(await head())
    expect(transactions.map(({ id, status }) => [String(id), status])).toEqual([[String(tx.id), 'hard_fail']])
    expect((await traced(await head())).transactions[1]).toMatchObject({
      id: String(tx.id),
      status: 'hard_fail',
    })
    expect(await balance(to)).toBe(0n)
  })

  test('a dropped transaction is accepted and never seen, until the same bytes come again', async () => {
    const { tx, to } = await prepared()
    devnet.trouble('EOS', { submits: ['drop'] })
    expect([await submit(tx), await state(tx)]).toEqual(['executed', 'UNKNOWN'])
    await devnet.mine('EOS', 2)
    expect(await balance(to)).toBe(0n)
    expect(await submit(tx)).toBe('executed')
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(10_000n)
  })

  test('a dropped transaction can no longer get in once it has expired', async () => {
    const { tx, to } = await prepared()
    devnet.trouble('EOS', { submits: ['drop'] })
    await submit(tx)
    await devnet.mine('EOS', 260)
    expect([await submit(tx), await balance(to)]).toEqual(['expired_tx_exception', 0n])
  })

  test('a lost reply leaves a transaction that pays all the same, once', async () => {
    const { tx, to } = await prepared()
    devnet.trouble('EOS', { submits: ['lose reply'] })
    await expect(submit(tx)).rejects.toThrow('fetch failed')
    expect(await submit(tx)).toBe('tx_duplicate')
    await devnet.mine('EOS', 1)
    expect(await balance(to)).toBe(10_000n)
  })

  test('a lost request leaves nothing', async () => {
    const { tx, to } = await prepared()
    devnet.trouble('EOS', { submits: ['lose request'] })
    await expect(submit(tx)).rejects.toThrow('fetch failed')
    await devnet.mine('EOS', 1)
    expect([await state(tx), await balance(to)]).toEqual(['UNKNOWN', 0n])
  })

  test('a stranger names another chain, and takes no signature that was made for ours', async () => {
    const { tx } = await prepared()
    devnet.trouble('EOS', { isStranger: true })
    expect(String((await client.v1.chain.get_info()).chain_id)).not.toBe(info().chainId)
    expect(await submit(tx)).toBe('unsatisfied_authorization')
    const to = await devnet.freshAddress('EOS')
    await devnet.send('EOS', 'EOS', to, 1n)
    await devnet.mine('EOS', 1)
    expect(await balance(to), 'the faucet is at home').toBe(1n)
  })

  test('a node that falls behind tells older blocks, until it catches up', async () => {
    const { tx, to } = await prepared()
    await submit(tx)
    await devnet.mine('EOS', 3)
    const last = await head()
    const held = async () => (await client.v1.chain.get_currency_balance('eosio.token', to)).map(String)
    devnet.trouble('EOS', { blocksBehind: 3 })
    expect([await head(), await held(), await state(tx)]).toEqual([last - 3, [], 'UNKNOWN'])
    await expect(traced(last)).rejects.toMatchObject({ response: { status: 404 } })
    devnet.trouble('EOS', null)
    expect([await head(), await held(), await state(tx)]).toEqual([last, ['1.0000 EOS'], 'IN_BLOCK'])
  })
})

describe('what the devnet does with it', () => {
  test('it says what it cannot send', async () => {
    await expect(devnet.send('EOS', 'USDT', 'devnetfaucet', 1n)).rejects.toThrow('there is no USDT on EOS')
    await expect(devnet.send('EOS', 'EOS', 'nobodyatall1', 1n)).rejects.toThrow('to account does not exist')
    await expect(devnet.balance('XRP', 'XRP', 'r')).rejects.toThrow('XRP is not running')
  })

  test('an account is created once, with a name that is one', async () => {
    const key = String(PrivateKey.generate('K1').toPublic())
    await devnet.eos.createAccount('newcomer1111', key)
    await devnet.mine('EOS', 1)
    const [found] = (await client.v1.chain.get_account('newcomer1111')).getPermission('owner').required_auth
      .keys
    expect(String(found?.key)).toBe(key)
    await expect(devnet.eos.createAccount('newcomer1111', key)).rejects.toThrow('already taken')
    await expect(devnet.eos.createAccount('short', key)).rejects.toThrow('only suffix')
  })

  test('after a kill -9 in the middle of its work the same chain goes on', async () => {
    const place = makeTemporaryFolder()
    const { child, said } = await runScript<Devnet>('run_devnet.ts', place.path, 'lively', 'EOS')
    onTestFinished(() => {
      child.kill('SIGKILL')
      place.remove()
    })
    const other = new APIClient({ url: info(said).rpcUrl })
    const block = async () => other.v1.chain.get_block((await other.v1.chain.get_info()).head_block_num)
    await expect.poll(async () => Number((await block()).block_num)).toBeGreaterThan(2)
    const before = await block()
    await killHard(child)
    const later = await startDevnet({ dataDir: place.path, networks: ['EOS'], mining: 'manual' })
    expect(later.networks).toEqual(said.networks)
    expect(String((await other.v1.chain.get_block(before.id)).block_num)).toBe(String(before.block_num))
    await later.stop()
  })
})
