import { createHash } from 'node:crypto'
import { join } from 'node:path'
import {
  Account,
  Asset,
  BASE_FEE,
  type FeeBumpTransaction,
  Horizon,
  Keypair,
  Memo,
  MuxedAccount,
  Networks,
  Operation,
  StrKey,
  type Transaction,
  TransactionBuilder,
  TransactionFailedError,
  xdr,
} from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Devnet, startDevnet } from '../src/index.ts'
import { openChain } from '../src/simulated/chain.ts'
import { readTransaction } from '../src/stellar/decode_transaction.ts'
import { readAccount } from '../src/stellar/entries.ts'
import { stellarRules } from '../src/stellar/rules.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: the simulated Stellar network answers the field's own client library as a real Horizon does, down to the codes.
 * How: the published client over HTTP and server-sent events; ledgers close when a test says so.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet
let horizon: Horizon.Server

const start = () => startDevnet({ dataDir: folder.path, networks: ['XLM'], mining: 'manual' })

beforeAll(async () => {
  devnet = await start()
  horizon = new Horizon.Server(info().horizonUrl, { allowHttp: true })
})

afterEach(() => devnet.trouble('XLM', null))

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

const info = () => {
  if (devnet.networks.XLM === undefined) throw new Error('XLM was started')
  return devnet.networks.XLM
}

type Built = xdr.Operation
type Options = {
  memo?: Memo
  fee?: string
  maxTime?: number
  minTime?: number
  sequence?: string
  source?: string
}

const XLM = 10_000_000n
const balance = (address: string) => devnet.balance('XLM', 'XLM', address)
const closeLedger = (ledgers = 1) => devnet.mine('XLM', ledgers)
const head = async () => (await horizon.root()).history_latest_ledger

/** An account with 100 XLM. */
async function funded(): Promise<Keypair> {
  const key = Keypair.random()
  await devnet.send('XLM', 'XLM', key.publicKey(), 100n * XLM)
  await closeLedger()
  return key
}

const payment = (destination: string, amount: string, more: { asset?: Asset; source?: string } = {}) =>
  Operation.payment({ destination, asset: Asset.native(), amount, ...more })

async function signed(
  keys: Keypair | readonly Keypair[],
  operations: Built | readonly Built[],
  { memo, fee = BASE_FEE, maxTime = 0, minTime = 0, sequence, source }: Options = {},
): Promise<Transaction> {
  const signers = [keys].flat()
  const id = signers[0]?.publicKey() ?? ''
  const known = sequence === undefined ? await horizon.loadAccount(id) : new Account(id, sequence)
  const account = source === undefined ? known : MuxedAccount.fromAddress(source, known.sequenceNumber())
  const builder = new TransactionBuilder(account, {
    fee,
    networkPassphrase: info().passphrase,
    timebounds: { minTime, maxTime },
  })
  for (const operation of [operations].flat()) builder.addOperation(operation)
  if (memo !== undefined) builder.addMemo(memo)
  const transaction = builder.build()
  transaction.sign(...signers)
  return transaction
}

/** Codes and XDR as the client reads them out of a refusal. */
async function codesOf(submitting: Promise<unknown>) {
  const error = await submitting.then(
    () => undefined,
    (thrown) => thrown,
  )
  if (!(error instanceof TransactionFailedError)) throw new Error(`not refused: ${error}`)
  const { transaction, operations } = error.getResultCodes()
  return [transaction, ...operations]
}

/** Submits, closes a ledger, and gives what the ledger says. */
async function enter(transaction: Transaction) {
  const said = await horizon.submitAsyncTransaction(transaction)
  expect(said.tx_status).toBe('PENDING')
  await closeLedger()
  return horizon.transactions().transaction(said.hash).call()
}

async function operationsOf(hash: string) {
  return (await horizon.operations().forTransaction(hash).call()).records as unknown as Record<
    string,
    unknown
  >[]
}

async function isKnown(hash: string): Promise<boolean> {
  const asked = horizon.transactions().transaction(hash).call()
  return asked.then(
    () => true,
    (error) => {
      expect(error.response.status).toBe(404)
      return false
    },
  )
}

const hashOf = (transaction: Transaction | FeeBumpTransaction) =>
  Buffer.from(transaction.hash()).toString('hex')

async function ask(path: string, init?: RequestInit) {
  const response = await fetch(`${info().horizonUrl}${path}`, init)
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

describe('what a client does', () => {
  test('a payment is submitted and answered when its ledger closed', async () => {
    const [sender, to] = [await funded(), await funded()]
    const transaction = await signed(sender, payment(to.publicKey(), '2.5'), { memo: Memo.text('order 7') })
    const submitting = horizon.submitTransaction(transaction)
    await expect
      .poll(
        async () =>
          (await horizon.submitAsyncTransaction(transaction).catch((error) => error.response.data)).tx_status,
      )
      .toBe('DUPLICATE')
    expect(await isKnown(hashOf(transaction))).toBe(false)
    await closeLedger()
    const answer = await submitting
    expect(answer).toMatchObject({ successful: true, hash: hashOf(transaction), ledger: await head() })
    expect(await balance(to.publicKey())).toBe(1_025_000_000n)
    expect(await balance(sender.publicKey())).toBe(974_999_900n)
    const found = await horizon.transactions().transaction(answer.hash).call()
    expect(found).toMatchObject({
      memo: 'order 7',
      memo_type: 'text',
      fee_charged: '100',
      max_fee: '100',
      operation_count: 1,
      source_account: sender.publicKey(),
      source_account_sequence: transaction.sequence,
      envelope_xdr: transaction.toXdr(),
    })
    expect(await horizon.submitTransaction(transaction), 'the same bytes again').toMatchObject({
      hash: answer.hash,
    })
    expect(await balance(to.publicKey())).toBe(1_025_000_000n)
  })

  test('submitted without waiting, it is pending; then it is in a ledger', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XLM')]
    const transaction = await signed(
      sender,
      Operation.createAccount({ destination: to, startingBalance: '1' }),
    )
    expect(await horizon.submitAsyncTransaction(transaction)).toEqual({
      tx_status: 'PENDING',
      hash: hashOf(transaction),
    })
    expect(await balance(to)).toBe(0n)
    await closeLedger()
    expect(await balance(to)).toBe(XLM)
    const submitAgain = () => horizon.submitAsyncTransaction(transaction).catch((error) => error.response)
    for (const ledgers of [8, 1]) {
      const later = await submitAgain()
      expect([later.status, later.data.tx_status], 'a ledger has just taken it').toEqual([
        503,
        'TRY_AGAIN_LATER',
      ])
      await devnet.mine('XLM', ledgers)
    }
    const again = await submitAgain()
    expect([again.status, again.data.tx_status]).toEqual([400, 'ERROR'])
    const result = xdr.TransactionResult.fromXdr(again.data.error_result_xdr, 'base64')
    expect(result.result.type).toBe('txBadSeq')
  })

  test('the hash of a ledger is that of its header, and each names the one before it and closes later', async () => {
    const sender = await funded()
    await enter(await signed(sender, payment(sender.publicKey(), '1')))
    await closeLedger(4)
    const { records } = await horizon.ledgers().order('desc').limit(5).call()
    for (const [index, ledger] of records.entries()) {
      const header = Buffer.from(ledger.header_xdr, 'base64')
      expect(createHash('sha256').update(header).digest('hex')).toBe(ledger.hash)
      const read = xdr.LedgerHeader.fromXdr(ledger.header_xdr, 'base64')
      expect(read.ledgerSeq).toBe(ledger.sequence)
      const before = records[index + 1]
      if (before === undefined) continue
      expect([ledger.prev_hash, ledger.sequence]).toEqual([before.hash, before.sequence + 1])
      expect(Date.parse(ledger.closed_at)).toBeGreaterThan(Date.parse(before.closed_at))
    }
    const one = records[4]
    expect(
      await horizon
        .ledgers()
        .ledger(one?.sequence ?? 0)
        .call(),
    ).toMatchObject({ hash: one?.hash, successful_transaction_count: 1 })
    await expect(
      horizon
        .ledgers()
        .ledger((await head()) + 1)
        .call(),
    ).rejects.toMatchObject({ response: { status: 404 } })
  })

  test('an account says what it has, what it must keep, and its next sequence', async () => {
    const key = await funded()
    const issuer = await funded()
    const asset = new Asset('USD', issuer.publicKey())
    await enter(
      await signed(key, [
        Operation.changeTrust({ asset, limit: '50' }),
        Operation.manageData({ name: 'config.memo_required', value: '1' }),
      ]),
    )
    const account = await horizon.loadAccount(key.publicKey())
    expect(account).toMatchObject({
      account_id: key.publicKey(),
      subentry_count: 2,
      data_attr: { 'config.memo_required': 'MQ==' },
      balances: [
        {
          asset_type: 'credit_alphanum4',
          asset_code: 'USD',
          asset_issuer: issuer.publicKey(),
          balance: '0.0000000',
          limit: '50.0000000',
        },
        { asset_type: 'native', balance: '99.9999800' },
      ],
    })
    expect(account.last_modified_ledger).toBe(await head())
    expect(BigInt(account.sequence) >> 32n).toBe(BigInt((await head()) - 2))
    await expect(
      horizon.submitTransaction(await signed(issuer, payment(key.publicKey(), '1'))),
    ).rejects.toThrow('account requires memo')
    await expect(horizon.loadAccount(await devnet.freshAddress('XLM'))).rejects.toMatchObject({
      response: { status: 404 },
    })
    const unheardOf = await devnet.freshAddress('XLM')
    expect(await ask(`/accounts/${unheardOf}/payments`)).toMatchObject({ status: 404 })
    expect(await ask('/accounts/nobody')).toMatchObject({
      status: 400,
      json: { extras: { invalid_field: 'account_id' } },
    })
  })

  test('the root and the fees say what a client has to know', async () => {
    expect(await horizon.root()).toMatchObject({
      network_passphrase: info().passphrase,
      history_elder_ledger: 1,
    })
    expect(await horizon.fetchBaseFee()).toBe(100)
    expect((await horizon.feeStats()).fee_charged.p99).toBe('100')
    const bounds = await horizon.fetchTimebounds(30)
    expect(bounds.maxTime).toBeGreaterThan(Date.now() / 1000)
  })

  test('payments are told page by page from either end, with their transactions when asked', async () => {
    const [sender, to] = [await funded(), (await funded()).publicKey()]
    const cursor = (await horizon.payments().order('desc').limit(1).call()).records[0]?.paging_token ?? ''
    const amounts = ['1.0000000', '2.0000000', '3.0000000', '4.0000000', '5.0000000']
    await enter(
      await signed(
        sender,
        amounts.slice(0, 3).map((amount) => payment(to, amount)),
        { memo: Memo.id('18446744073709551615') },
      ),
    )
    await enter(
      await signed(
        sender,
        amounts.slice(3).map((amount) => payment(to, amount)),
        { memo: Memo.id('7') },
      ),
    )
    for (const order of ['asc', 'desc'] as const) {
      const told: unknown[] = []
      let page = await horizon.payments().forAccount(to).order(order).limit(2).join('transactions').call()
      for (let count = 0; page.records.length > 0; count++) {
        expect(count).toBeLessThan(5)
        for (const record of page.records as unknown as {
          amount?: string
          transaction_attr: { memo?: string }
        }[])
          told.push([record.amount, record.transaction_attr.memo])
        page = await page.next()
      }
      const expected = [
        [undefined, undefined],
        ...amounts.map((amount, index) => [amount, index < 3 ? '18446744073709551615' : '7']),
      ]
      expect(told).toEqual(order === 'asc' ? expected : expected.reverse())
    }
    const after = await horizon.payments().cursor(cursor).limit(200).call()
    expect(after.records.map((record) => (record as unknown as { amount: string }).amount)).toEqual(amounts)
    const ledger = await horizon
      .payments()
      .forLedger(await head())
      .call()
    expect(ledger.records).toHaveLength(2)
    const [record] = ledger.records
    expect(
      await horizon
        .operations()
        .operation(record?.id ?? '')
        .call(),
    ).toMatchObject({ id: record?.id, paging_token: record?.id })
    expect(
      (
        await horizon
          .transactions()
          .forLedger(await head())
          .call()
      ).records,
    ).toHaveLength(1)
    expect(await ask('/payments?limit=201')).toMatchObject({
      status: 400,
      json: { extras: { invalid_field: 'limit' } },
    })
    expect(await ask('/payments?cursor=x')).toMatchObject({ status: 400 })
  })

  test('a stream tells what was before and what comes, and goes on where it was cut', async () => {
    const [sender, to] = [await funded(), (await funded()).publicKey()]
    const heard: string[] = []
    const listen = (cursor: string) =>
      horizon
        .payments()
        .forAccount(to)
        .join('transactions')
        .cursor(cursor)
        .stream({
          onmessage: (record) =>
            heard.push(`${(record as unknown as { amount?: string }).amount} ${record.paging_token}`),
        })
    const hangUp = listen('0')
    await expect.poll(() => heard).toHaveLength(1)
    await enter(await signed(sender, [payment(to, '1'), payment(to, '2')]))
    await expect
      .poll(() => heard.map((line) => line.split(' ')[0]))
      .toEqual(['undefined', '1.0000000', '2.0000000'])
    hangUp()
    await enter(await signed(sender, payment(to, '3')))
    const hangUpAgain = listen(heard.at(-1)?.split(' ')[1] ?? '')
    await expect
      .poll(() => heard.map((line) => line.split(' ')[0]))
      .toEqual(['undefined', '1.0000000', '2.0000000', '3.0000000'])
    hangUpAgain()
  })

  test('a stream that hung for a while says afterwards what it did not say', async () => {
    const to = (await funded()).publicKey()
    const heard: unknown[] = []
    const hangUp = horizon
      .payments()
      .forAccount(to)
      .cursor('now')
      .stream({
        onmessage: (record) => heard.push((record as unknown as { amount: string }).amount),
      })
    const pay = async (stroops: bigint) => {
      await devnet.send('XLM', 'XLM', to, stroops)
      await closeLedger()
    }
    await expect
      .poll(async () => {
        await pay(1n)
        return heard.length
      })
      .toBeGreaterThan(0)
    devnet.trouble('XLM', { hangs: true })
    await pay(7n)
    devnet.trouble('XLM', { hangs: false })
    await pay(8n)
    await expect.poll(() => heard.slice(-2)).toEqual(['0.0000007', '0.0000008'])
    hangUp()
  })

  test('an account has one place in the queue: the next transaction is for later', async () => {
    const sender = await funded()
    const { sequence } = await horizon.loadAccount(sender.publicKey())
    const [first, second] = [
      await signed(sender, payment(sender.publicKey(), '1')),
      await signed(sender, payment(sender.publicKey(), '1'), { sequence: String(BigInt(sequence) + 1n) }),
    ]
    await horizon.submitAsyncTransaction(first)
    const later = await horizon.submitAsyncTransaction(second).catch((error) => error.response)
    expect([later.status, later.data.tx_status]).toEqual([503, 'TRY_AGAIN_LATER'])
    await closeLedger()
    expect(await enter(second)).toMatchObject({ successful: true })
  })

  test('two clients at once: twenty payments of twenty accounts all arrive, each once', async () => {
    const to = (await funded()).publicKey()
    const senders = Array.from({ length: 20 }, () => Keypair.random())
    for (const sender of senders) await devnet.send('XLM', 'XLM', sender.publicKey(), 2n * XLM)
    await closeLedger()
    const transactions = await Promise.all(senders.map((sender) => signed(sender, payment(to, '0.0001'))))
    const pair = [horizon, new Horizon.Server(info().horizonUrl, { allowHttp: true })]
    const said = await Promise.all(
      transactions.map((each, index) => pair[index % 2]?.submitAsyncTransaction(each)),
    )
    expect(said.map((each) => each?.tx_status)).toEqual(senders.map(() => 'PENDING'))
    await closeLedger()
    expect(await balance(to)).toBe(100n * XLM + 20_000n)
  })
})

const nowhere = Keypair.random().publicKey()

describe('what a transaction is refused for, and it costs nothing', () => {
  test.each<[string, Options]>([
    ['tx_bad_seq', { sequence: '1' }],
    ['tx_insufficient_fee', { fee: '99' }],
    ['tx_too_late', { maxTime: 1_000_000_000 }],
    ['tx_too_early', { minTime: 4_000_000_000 }],
  ])('%s', async (code, options) => {
    const [sender, to] = [await funded(), await funded()]
    const transaction = await signed(sender, payment(to.publicKey(), '1'), options)
    expect(await codesOf(horizon.submitTransaction(transaction))).toEqual([code])
    await closeLedger()
    expect([await isKnown(hashOf(transaction)), await balance(sender.publicKey())]).toEqual([
      false,
      100n * XLM,
    ])
  })

  test('one whose time passes while it waits is in no ledger, and has not used up its sequence', () => {
    const chain = openChain(join(folder.path, 'late.jsonl'), stellarRules)
    const bank = Keypair.master(info().passphrase)
    const maxTime = Math.floor(chain.head.timeMs / 1000) + 2
    const transaction = new TransactionBuilder(new Account(bank.publicKey(), '0'), {
      fee: BASE_FEE,
      networkPassphrase: info().passphrase,
      timebounds: { minTime: 0, maxTime },
    })
      .addOperation(Operation.createAccount({ destination: nowhere, startingBalance: '5' }))
      .build()
    transaction.sign(bank)
    chain.submit(readTransaction(transaction.toXdr(), info().passphrase))
    expect(readAccount(chain.open(), nowhere)?.balance).toBe(5n * XLM)
    chain.mine(3, () => false)
    expect(chain.waiting).toHaveLength(1)
    chain.mine(1)
    expect([chain.waiting, chain.head.included, readAccount(chain.view().state, nowhere)]).toEqual([
      [],
      [],
      undefined,
    ])
    expect(readAccount(chain.view().state, bank.publicKey())?.sequence).toBe(0n)
    chain.close()
  })

  test('tx_bad_auth by the key of another, tx_bad_auth_extra with one too many, and for another network', async () => {
    const [sender, other] = [await funded(), await funded()]
    const { sequence } = await horizon.loadAccount(sender.publicKey())
    const operation = payment(other.publicKey(), '1')
    const build = (networkPassphrase: string) =>
      new TransactionBuilder(new Account(sender.publicKey(), sequence), { fee: BASE_FEE, networkPassphrase })
        .addOperation(operation)
        .setTimeout(0)
        .build()
    const [unsigned, byOther, byBoth, elsewhere] = [
      ...Array.from({ length: 3 }, () => build(info().passphrase)),
      build(Networks.PUBLIC),
    ]
    byOther?.sign(other)
    byBoth?.sign(sender, other)
    elsewhere?.sign(sender)
    const codes = [unsigned, byOther, byBoth, elsewhere].map(
      async (each) => each && codesOf(horizon.submitTransaction(each)),
    )
    expect(await Promise.all(codes)).toEqual([
      ['tx_bad_auth'],
      ['tx_bad_auth'],
      ['tx_bad_auth_extra'],
      ['tx_bad_auth'],
    ])
  })

  test('a changed byte breaks the signature, and bytes that are no transaction are malformed', async () => {
    const [sender, to] = [await funded(), await funded()]
    const envelope = Buffer.from((await signed(sender, payment(to.publicKey(), '1'))).toXdr(), 'base64')
    const post = (bytes: Buffer) => {
      const body = new URLSearchParams({ tx: bytes.toString('base64') })
      return ask('/transactions', { method: 'POST', body })
    }
    const at = envelope.indexOf(Buffer.from('0000000000989680', 'hex'))
    const changed = Buffer.from(envelope)
    changed.writeUInt8(0x81, at + 7)
    expect(await post(changed)).toMatchObject({
      status: 400,
      json: { title: 'Transaction Failed', extras: { result_codes: { transaction: 'tx_bad_auth' } } },
    })
    for (const bytes of [
      envelope.subarray(0, -1),
      Buffer.concat([envelope, Buffer.alloc(4)]),
      Buffer.from('hello'),
      Buffer.alloc(0),
    ])
      expect(await post(bytes)).toMatchObject({ status: 400, json: { title: 'Transaction Malformed' } })
  })

  test('tx_no_source_account from nowhere, tx_insufficient_balance from an account that has only its reserve', async () => {
    const [nobody, poor] = [Keypair.random(), Keypair.random()]
    const to = (await funded()).publicKey()
    const from = await signed(nobody, payment(to, '1'), { sequence: '1' })
    expect(await codesOf(horizon.submitTransaction(from))).toEqual(['tx_no_source_account'])
    await devnet.send('XLM', 'XLM', poor.publicKey(), XLM + 99n)
    await closeLedger()
    const short = await signed(poor, payment(to, '0.0000001'))
    expect(await codesOf(horizon.submitTransaction(short))).toEqual(['tx_insufficient_balance'])
  })

  test('an operation of somebody who did not sign, or of a kind that is left out, refuses the whole', async () => {
    const [sender, other] = [await funded(), await funded()]
    const foreign = payment(sender.publicKey(), '50', { source: other.publicKey() })
    const transaction = await signed(sender, [payment(other.publicKey(), '1'), foreign])
    expect(await codesOf(horizon.submitTransaction(transaction))).toEqual([
      'tx_failed',
      'op_success',
      'op_bad_auth',
    ])
    expect(await enter(await signed([sender, other], foreign))).toMatchObject({ successful: true })
    expect(await balance(other.publicKey())).toBe(50n * XLM)
    const leftOut = await signed(sender, Operation.setOptions({ homeDomain: 'example.org' }))
    expect(await codesOf(horizon.submitTransaction(leftOut))).toEqual(['tx_failed', 'op_not_supported'])
  })
})

describe('what fails in the ledger and costs the fee', () => {
  test.each<[string, () => Promise<Built>]>([
    ['op_no_destination', async () => payment(nowhere, '5')],
    ['op_underfunded', async () => payment((await funded()).publicKey(), '99')],
    [
      'op_low_reserve',
      async () => Operation.createAccount({ destination: nowhere, startingBalance: '0.9999999' }),
    ],
    [
      'op_already_exists',
      async () =>
        Operation.createAccount({ destination: (await funded()).publicKey(), startingBalance: '5' }),
    ],
    [
      'op_no_trust',
      async () => payment((await funded()).publicKey(), '5', { asset: new Asset('USD', nowhere) }),
    ],
    ['op_under_dest_min', async () => strictSend((await funded()).publicKey(), '5', '6')],
    ['op_over_source_max', async () => strictReceive((await funded()).publicKey(), '4', '5')],
    ['op_no_account', async () => Operation.accountMerge({ destination: nowhere })],
    ['op_no_issuer', async () => Operation.changeTrust({ asset: new Asset('USD', nowhere) })],
  ])('%s', async (code, make) => {
    const operation = await make()
    const sender = await funded()
    const transaction = await signed(sender, operation, { fee: '250' })
    const submitting = codesOf(horizon.submitTransaction(transaction))
    await expect
      .poll(
        async () =>
          (await horizon.submitAsyncTransaction(transaction).catch((error) => error.response.data)).tx_status,
      )
      .toBe('DUPLICATE')
    await closeLedger()
    expect(await submitting).toEqual(['tx_failed', code])
    const found = await horizon.transactions().transaction(hashOf(transaction)).call()
    expect(found).toMatchObject({ successful: false, fee_charged: '100', max_fee: '250' })
    expect(await balance(sender.publicKey())).toBe(100n * XLM - 100n)
    const { sequence } = await horizon.loadAccount(sender.publicKey())
    expect(sequence, 'its sequence is used up').toBe(transaction.sequence)
    expect(await operationsOf(found.hash)).toMatchObject([{ transaction_successful: false }])
    const payments = () => horizon.payments().forAccount(sender.publicKey())
    const isListed = (records: { transaction_hash: string }[]) =>
      records.some(({ transaction_hash }) => transaction_hash === found.hash)
    expect(isListed((await payments().call()).records)).toBe(false)
    expect(isListed((await payments().includeFailed(true).call()).records)).toBe(code !== 'op_no_issuer')
  })

  test('one operation that fails undoes all of its transaction', async () => {
    const [sender, to] = [await funded(), await funded()]
    const transaction = await signed(sender, [
      payment(to.publicKey(), '5'),
      payment(nowhere, '5'),
      payment(to.publicKey(), '6'),
    ])
    await horizon.submitAsyncTransaction(transaction)
    await closeLedger()
    expect(await codesOf(horizon.submitTransaction(transaction))).toEqual([
      'tx_failed',
      'op_success',
      'op_no_destination',
      'op_success',
    ])
    expect([await balance(to.publicKey()), await balance(sender.publicKey())]).toEqual([
      100n * XLM,
      100n * XLM - 300n,
    ])
  })
})

const strictSend = (destination: string, sendAmount: string, destMin: string) =>
  Operation.pathPaymentStrictSend({
    sendAsset: Asset.native(),
    sendAmount,
    destination,
    destAsset: Asset.native(),
    destMin,
  })
const strictReceive = (destination: string, sendMax: string, destAmount: string) =>
  Operation.pathPaymentStrictReceive({
    sendAsset: Asset.native(),
    sendMax,
    destination,
    destAsset: Asset.native(),
    destAmount,
  })

describe('what money can look like, and what looks like it and is none', () => {
  test('a muxed address is told beside its account, at either end', async () => {
    const [sender, to] = [await funded(), await funded()]
    const muxed = (key: Keypair, id: string) =>
      new MuxedAccount(new Account(key.publicKey(), '0'), id).accountId()
    const [from, into] = [muxed(sender, '5'), muxed(to, '18446744073709551615')]
    expect(StrKey.isValidMed25519PublicKey(into)).toBe(true)
    const { hash, ...found } = await enter(await signed(sender, payment(into, '3'), { source: from }))
    expect(found).toMatchObject({
      source_account: sender.publicKey(),
      account_muxed: from,
      account_muxed_id: '5',
    })
    expect(await operationsOf(hash)).toMatchObject([
      {
        type: 'payment',
        from: sender.publicKey(),
        from_muxed: from,
        to: to.publicKey(),
        to_muxed: into,
        to_muxed_id: '18446744073709551615',
        amount: '3.0000000',
        asset_type: 'native',
      },
    ])
    expect(await balance(into)).toBe(103n * XLM)
  })

  test.each([
    ['text', Memo.text('żółw 🐢'), 'żółw 🐢'],
    ['id', Memo.id('42'), '42'],
    ['hash', Memo.hash('ab'.repeat(32)), Buffer.from('ab'.repeat(32), 'hex').toString('base64')],
    ['return', Memo.return('cd'.repeat(32)), Buffer.from('cd'.repeat(32), 'hex').toString('base64')],
    ['none', Memo.none(), undefined],
  ])('a memo of the kind %s stays what it was', async (memo_type, memo, told) => {
    const sender = await funded()
    const found = await enter(await signed(sender, payment(sender.publicKey(), '1'), { memo }))
    expect([found.memo_type, found.memo]).toEqual([memo_type, told])
  })

  test.each(['XLM', 'LUMENS'])('%s of an issuer is no lumen', async (code) => {
    const [issuer, holder, receiver] = [await funded(), await funded(), await funded()]
    const asset = new Asset(code, issuer.publicKey())
    for (const key of [holder, receiver])
      await enter(await signed(key, Operation.changeTrust({ asset, limit: '100' })))
    await enter(await signed(issuer, payment(holder.publicKey(), '60', { asset })))
    const { hash } = await enter(await signed(holder, payment(receiver.publicKey(), '60', { asset })))
    expect(await operationsOf(hash)).toMatchObject([
      {
        type: 'payment',
        asset_type: code.length > 4 ? 'credit_alphanum12' : 'credit_alphanum4',
        asset_code: code,
        asset_issuer: issuer.publicKey(),
        amount: '60.0000000',
      },
    ])
    expect(await balance(receiver.publicKey())).toBe(100n * XLM - 100n)
    const full = await signed(issuer, payment(receiver.publicKey(), '41', { asset }))
    expect(await enter(full)).toMatchObject({ successful: false })
    const { balances } = await horizon.loadAccount(receiver.publicKey())
    expect(balances[0]).toMatchObject({ asset_code: code, balance: '60.0000000' })
  })

  test('a path payment says what it may cost, what it cost, and what arrived', async () => {
    const [sender, to] = [await funded(), await funded()]
    const operations = [strictReceive(to.publicKey(), '80', '1.5'), strictSend(to.publicKey(), '2', '0.1')]
    const { hash } = await enter(await signed(sender, operations))
    expect(await operationsOf(hash)).toMatchObject([
      {
        type: 'path_payment_strict_receive',
        amount: '1.5000000',
        source_amount: '1.5000000',
        source_max: '80.0000000',
      },
      {
        type: 'path_payment_strict_send',
        amount: '2.0000000',
        source_amount: '2.0000000',
        destination_min: '0.1000000',
      },
    ])
    expect(await balance(to.publicKey())).toBe(103n * XLM + 5_000_000n)
  })

  test('a path payment spends hundreds of something issued, and delivers what offers give for it', async () => {
    const [issuer, holder, to] = [await funded(), await funded(), (await funded()).publicKey()]
    const asset = new Asset('XLM', issuer.publicKey())
    await enter(await signed(holder, Operation.changeTrust({ asset, limit: '5000' })))
    await enter(await signed(issuer, payment(holder.publicKey(), '5000', { asset })))
    for (const [amount, price] of [
      ['2', '200'],
      ['3', '100'],
    ] as const) {
      const offer = Operation.manageSellOffer({ selling: Asset.native(), buying: asset, amount, price })
      expect(await enter(await signed(issuer, offer))).toMatchObject({ successful: true })
    }
    const way = { sendAsset: asset, destination: to, destAsset: Asset.native() }
    const receive = (sendMax: string, destAmount: string) =>
      Operation.pathPaymentStrictReceive({ ...way, sendMax, destAmount })
    const send = (sendAmount: string, destMin: string) =>
      Operation.pathPaymentStrictSend({ ...way, sendAmount, destMin })
    const { hash } = await enter(await signed(holder, [receive('1000', '2'), send('300', '0.0000001')]))
    const native = { asset_type: 'native', source_asset_code: 'XLM', source_asset_type: 'credit_alphanum4' }
    expect(await operationsOf(hash)).toMatchObject([
      { ...native, amount: '2.0000000', source_amount: '200.0000000', source_max: '1000.0000000' },
      { ...native, amount: '2.0000000', source_amount: '300.0000000', destination_min: '0.0000001' },
    ])
    expect(await balance(to)).toBe(104n * XLM)
    const { balances } = await horizon.loadAccount(holder.publicKey())
    expect(balances[0]).toMatchObject({ balance: '4500.0000000' })
    for (const [operation, code] of [
      [send('500', '0.0000001'), 'op_too_few_offers'],
      [send('100', '1'), 'op_under_dest_min'],
      [receive('100', '1'), 'op_over_source_max'],
    ] as const) {
      const transaction = await signed(holder, operation)
      await enter(transaction)
      expect(await codesOf(horizon.submitTransaction(transaction))).toEqual(['tx_failed', code])
    }
    expect(await balance(to)).toBe(104n * XLM)
  })

  test('a merged account leaves all it had, which only the result says; its address is free again', async () => {
    const [sender, to] = [await funded(), await funded()]
    await closeLedger()
    const into = new MuxedAccount(new Account(to.publicKey(), '0'), '9').accountId()
    const found = await enter(await signed(sender, Operation.accountMerge({ destination: into })))
    const [operation] = await operationsOf(found.hash)
    expect(operation).toMatchObject({
      type: 'account_merge',
      account: sender.publicKey(),
      into: to.publicKey(),
      into_muxed: into,
      into_muxed_id: '9',
    })
    expect(operation).not.toHaveProperty('amount')
    const result = xdr.TransactionResult.fromXdr(found.result_xdr, 'base64').toJson()
    expect(JSON.stringify(result)).toContain('"account_merge":{"success":"999999900"}')
    expect((await horizon.payments().forAccount(sender.publicKey()).call()).records).toHaveLength(2)
    expect([await balance(to.publicKey()), await balance(sender.publicKey())]).toEqual([
      200n * XLM - 100n,
      0n,
    ])
    await devnet.send('XLM', 'XLM', sender.publicKey(), XLM)
    await closeLedger()
    const { sequence } = await horizon.loadAccount(sender.publicKey())
    expect(BigInt(sequence) >> 32n).toBe(BigInt(await head()))
  })

  describe('a payment whose fee somebody else pays', () => {
    async function wrapped(inner: Transaction, payer: Keypair, fee = '100', signer = payer) {
      const bump = TransactionBuilder.buildFeeBumpTransaction(payer, fee, inner, info().passphrase)
      bump.sign(signer)
      return bump
    }

    test('is a payment under the hash of its wrapping, and its transaction is found under either hash', async () => {
      const [sender, payer, to] = [await funded(), await funded(), await funded()]
      const inner = await signed(sender, payment(to.publicKey(), '3'), { memo: Memo.id('5') })
      const bump = await wrapped(inner, payer, '300')
      const [hash, innerHash] = [hashOf(bump), hashOf(inner)]
      expect(await horizon.submitAsyncTransaction(bump)).toEqual({ tx_status: 'PENDING', hash })
      await closeLedger()
      const { records } = await horizon.payments().forAccount(to.publicKey()).order('desc').limit(1).call()
      expect(records).toMatchObject([
        { transaction_hash: hash, from: sender.publicKey(), amount: '3.0000000' },
      ])
      const told = {
        successful: true,
        memo: '5',
        source_account: sender.publicKey(),
        fee_account: payer.publicKey(),
        fee_charged: '200',
        max_fee: '600',
        fee_bump_transaction: { hash },
        inner_transaction: { hash: innerHash, max_fee: '100' },
      }
      for (const id of [hash, innerHash])
        expect(await horizon.transactions().transaction(id).call()).toMatchObject({ ...told, id, hash: id })
      expect(await operationsOf(innerHash)).toMatchObject([{ id: records[0]?.id, transaction_hash: hash }])
      const balances = [sender, payer, to].map((key) => balance(key.publicKey()))
      expect(await Promise.all(balances)).toEqual([97n * XLM, 100n * XLM - 200n, 103n * XLM])
      expect(await horizon.submitTransaction(inner), 'what was inside, again').toMatchObject({
        hash: innerHash,
      })
    })

    test('fails like any other, and is refused for what is inside or for its wrapping', async () => {
      const [sender, payer, to] = [await funded(), await funded(), (await funded()).publicKey()]
      const failing = await wrapped(await signed(sender, payment(nowhere, '3')), payer)
      await horizon.submitAsyncTransaction(failing)
      await closeLedger()
      const code = 'tx_fee_bump_inner_failed'
      expect(await codesOf(horizon.submitTransaction(failing))).toEqual([code, 'op_no_destination'])
      expect(await horizon.transactions().transaction(hashOf(failing)).call()).toMatchObject({
        successful: false,
      })
      expect(await balance(payer.publicKey())).toBe(100n * XLM - 200n)
      const stale = await wrapped(await signed(sender, payment(to, '3'), { sequence: '1' }), payer)
      expect(await codesOf(horizon.submitTransaction(stale))).toEqual([code])
      const good = await signed(sender, payment(to, '3'), { fee: '200' })
      for (const [bump, refusal] of [
        [await wrapped(good, payer, '200', sender), 'tx_bad_auth'],
        [await wrapped(good, Keypair.random(), '200'), 'tx_no_source_account'],
      ] as const)
        expect(await codesOf(horizon.submitTransaction(bump))).toEqual([refusal])
    })
  })

  test('a hundred operations of one transaction are a hundred payments', async () => {
    const [sender, to] = [await funded(), await funded()]
    const operations = Array.from({ length: 100 }, (_, index) =>
      payment(to.publicKey(), `0.${String(index + 1).padStart(3, '0')}`),
    )
    const found = await enter(await signed(sender, operations, { memo: Memo.id('77') }))
    expect(found).toMatchObject({ successful: true, operation_count: 100, fee_charged: '10000' })
    const { records } = await horizon.payments().forAccount(to.publicKey()).order('desc').limit(100).call()
    expect(new Set(records.map(({ id }) => id)).size).toBe(100)
    expect(new Set(records.map(({ transaction_hash }) => transaction_hash))).toEqual(new Set([found.hash]))
    expect(await balance(to.publicKey())).toBe(100n * XLM + 50_500_000n)
  })

  test('a bumped sequence makes everything signed before it worthless', async () => {
    const sender = await funded()
    const { sequence } = await horizon.loadAccount(sender.publicKey())
    const old = await signed(sender, payment(sender.publicKey(), '1'), {
      sequence: String(BigInt(sequence) + 1n),
    })
    const bumpTo = String(BigInt(sequence) + 5n)
    const { hash } = await enter(await signed(sender, Operation.bumpSequence({ bumpTo })))
    expect(await operationsOf(hash)).toMatchObject([{ type: 'bump_sequence', bump_to: bumpTo }])
    expect((await horizon.loadAccount(sender.publicKey())).sequence).toBe(bumpTo)
    expect(await codesOf(horizon.submitTransaction(old))).toEqual(['tx_bad_seq'])
  })
})

describe('what a test does to it', () => {
  async function prepared() {
    const [sender, to] = [await funded(), await devnet.freshAddress('XLM')]
    const transaction = await signed(
      sender,
      Operation.createAccount({ destination: to, startingBalance: '5' }),
    )
    return { to, transaction, hash: hashOf(transaction) }
  }

  test('a dropped transaction was pending and is never seen again, until the same bytes come again', async () => {
    const { to, transaction, hash } = await prepared()
    devnet.trouble('XLM', { submits: ['drop'] })
    expect(await horizon.submitAsyncTransaction(transaction)).toMatchObject({ tx_status: 'PENDING' })
    await closeLedger(3)
    expect([await isKnown(hash), await balance(to)]).toEqual([false, 0n])
    expect(await enter(transaction)).toMatchObject({ successful: true })
    expect(await balance(to)).toBe(5n * XLM)
  })

  test('whoever waits for a dropped transaction is told after six ledgers that nobody knows', async () => {
    const { to, transaction } = await prepared()
    devnet.trouble('XLM', { submits: ['drop'] })
    const submitting = horizon.submitTransaction(transaction).catch((error) => error.response)
    const isWaited = await expect.poll(async () => {
      await closeLedger()
      return Promise.race([submitting, undefined])
    })
    await isWaited.toMatchObject({ status: 504, data: { title: 'Timeout' } })
    expect(await balance(to)).toBe(0n)
  })

  test('a lost reply leaves a transaction that was accepted all the same, a lost request nothing', async () => {
    const [done, undone] = [await prepared(), await prepared()]
    devnet.trouble('XLM', { submits: ['lose reply', 'lose request'] })
    await expect(horizon.submitAsyncTransaction(done.transaction)).rejects.toThrow()
    await expect(horizon.submitTransaction(undone.transaction)).rejects.toThrow()
    await closeLedger()
    expect([await balance(done.to), await balance(undone.to)]).toEqual([5n * XLM, 0n])
    expect(await horizon.submitTransaction(done.transaction)).toMatchObject({ successful: true })
  })

  test('a transaction fails with the code that was asked for: an op_ code in its ledger, a tx_ code before', async () => {
    const [inLedger, before] = [await prepared(), await prepared()]
    devnet.trouble('XLM', { submits: [{ failWith: 'op_underfunded' }, { failWith: 'tx_internal_error' }] })
    await horizon.submitAsyncTransaction(inLedger.transaction)
    expect(await codesOf(horizon.submitTransaction(before.transaction))).toEqual(['tx_internal_error'])
    await closeLedger()
    expect(await codesOf(horizon.submitTransaction(inLedger.transaction))).toEqual([
      'tx_failed',
      'op_underfunded',
    ])
    expect(await isKnown(inLedger.hash)).toBe(true)
    expect(await isKnown(before.hash)).toBe(false)
  })

  test('a stranger names another network, and knows nobody who signed for ours', async () => {
    const { transaction } = await prepared()
    devnet.trouble('XLM', { isStranger: true })
    expect((await horizon.root()).network_passphrase).toBe(Networks.TESTNET)
    expect(await codesOf(horizon.submitTransaction(transaction))).toEqual(['tx_bad_auth'])
  })

  test('a Horizon that is behind tells older ledgers and forgets newer payments, until it catches up', async () => {
    const { to, transaction, hash } = await prepared()
    await enter(transaction)
    await closeLedger(2)
    const before = await head()
    devnet.trouble('XLM', { blocksBehind: 3 })
    expect([await head(), await isKnown(hash)]).toEqual([before - 3, false])
    await expect(horizon.loadAccount(to)).rejects.toMatchObject({ response: { status: 404 } })
    devnet.trouble('XLM', null)
    expect([await head(), await isKnown(hash)]).toEqual([before, true])
  })

  test('the faucet creates an account, then pays it, with a memo or a number in the address', async () => {
    const to = await devnet.freshAddress('XLM')
    const muxed = new MuxedAccount(new Account(to, '0'), '12').accountId()
    const sent = [
      await devnet.send('XLM', 'XLM', muxed, XLM),
      await devnet.send('XLM', 'XLM', muxed, 1n),
      await devnet.send('XLM', 'XLM', muxed, 1n, 1, '12'),
      await devnet.send('XLM', 'XLM', to, 1n, 1, '12'),
      await devnet.send('XLM', 'XLM', to, 1n, 1, 'twelve'),
    ]
    await closeLedger()
    const told = await Promise.all(
      sent.map(async ({ txHash }) => {
        const { memo_type, memo, ledger_attr } = await horizon.transactions().transaction(txHash).call()
        const [{ to_muxed_id } = {}] = await operationsOf(txHash)
        expect(ledger_attr).toBe(await head())
        return [memo_type, memo, to_muxed_id]
      }),
    )
    expect(told).toEqual([
      ['id', '12', undefined],
      ['none', undefined, '12'],
      ['none', undefined, '12'],
      ['id', '12', undefined],
      ['text', 'twelve', undefined],
    ])
    expect(await balance(muxed)).toBe(XLM + 4n)
    await expect(devnet.send('XLM', 'XLM', muxed, 1n, 1, '13')).rejects.toThrow('says 12, not 13')
    await expect(devnet.send('XLM', 'XLM', await devnet.freshAddress('XLM'), XLM - 1n)).rejects.toThrow(
      'op_low_reserve',
    )
    await expect(devnet.send('XLM', 'BTC', to, 1n)).rejects.toThrow('no BTC on XLM')
  })

  test('a closed ledger is final, and no payment is replaced', async () => {
    await expect(devnet.reorg('XLM', 1)).rejects.toThrow('final')
    const { txHash } = await devnet.send('XLM', 'XLM', await devnet.freshAddress('XLM'), XLM)
    await expect(devnet.replace(txHash)).rejects.toThrow('no network')
  })

  test('a second start has the same address, ledgers and queue', async () => {
    const { to, transaction } = await prepared()
    await horizon.submitAsyncTransaction(transaction)
    const ledgers = async () =>
      (await horizon.ledgers().order('desc').limit(200).call()).records.map(({ header_xdr }) => header_xdr)
    const [before, networks] = [await ledgers(), devnet.networks]
    await devnet.stop()
    devnet = await start()
    expect(devnet.networks).toEqual(networks)
    // The client first has to notice that its line was cut.
    await expect.poll(ledgers).toEqual(before)
    await closeLedger()
    expect(await balance(to)).toBe(5n * XLM)
  })
})
