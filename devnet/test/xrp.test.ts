import { encode, encodeForSigning } from 'ripple-binary-codec'
import { sign } from 'ripple-keypairs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AccountInfoRequest,
  AccountSetAsfFlags,
  Client,
  classicAddressToXAddress,
  getBalanceChanges,
  hashes,
  type Payment,
  PaymentFlags,
  type SubmittableTransaction,
  Wallet,
} from 'xrpl'
import { type Devnet, startDevnet } from '../src/index.ts'
import { makeTemporaryFolder, PATIENCE_MS } from './harness.ts'

/**
 * What: the simulated XRP Ledger answers the field's own client library as a real server does, down to the codes.
 * How: the published client over its WebSocket, and plain HTTP beside it; ledgers close when a test says so.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet
let client: Client

beforeAll(async () => {
  devnet = await startDevnet({
    dataDir: folder.path,
    networks: ['XRP'],
    mining: 'manual',
    blockIntervalMs: { XRP: 100 },
  })
  client = await connect()
})

afterAll(async () => {
  await client?.disconnect()
  await devnet?.stop()
  folder.remove()
})

const info = () => {
  if (devnet.networks.XRP === undefined) throw new Error('XRP was started')
  return devnet.networks.XRP
}

async function connect(): Promise<Client> {
  const connected = new Client(info().wsUrl, { timeout: PATIENCE_MS, connectionTimeout: PATIENCE_MS })
  await connected.connect()
  return connected
}

async function funded(xrp = 100): Promise<Wallet> {
  const wallet = Wallet.generate()
  await devnet.send('XRP', 'XRP', wallet.address, BigInt(xrp) * 1_000_000n)
  await devnet.mine('XRP', 1)
  return wallet
}

const payment = (from: Wallet, to: string, drops: string, more: Partial<Payment> = {}): Payment => ({
  TransactionType: 'Payment',
  Account: from.address,
  Destination: to,
  Amount: drops,
  ...more,
})

/** Signs exactly what it is given, also what the client library would refuse to sign. */
function signAsIs(fields: object, { publicKey, privateKey }: Wallet): string {
  const unsigned = { ...fields, SigningPubKey: publicKey }
  return encode({ ...unsigned, TxnSignature: sign(encodeForSigning(unsigned), privateKey) })
}

/** Filled in by the client, then changed, then signed. */
async function signed(wallet: Wallet, tx: SubmittableTransaction, changes: object = {}): Promise<string> {
  return signAsIs(Object.assign(await client.autofill(tx), changes), wallet)
}

/** So many ledgers after the one that was open what is kept may still get in. */
const HELD_LEDGERS = 6

async function submit(blob: string): Promise<string> {
  const { result } = await client.request({ command: 'submit', tx_blob: blob })
  return result.engine_result
}

/** Submits, closes a ledger, and gives what the ledger says. */
async function enter(wallet: Wallet, tx: SubmittableTransaction, changes: object = {}) {
  const blob = await signed(wallet, tx, changes)
  const submitted = await submit(blob)
  await devnet.mine('XRP', 1)
  const { result } = await client.request({ command: 'tx', transaction: hashes.hashSignedTx(blob) })
  if (typeof result.meta !== 'object') throw new Error('a validated transaction has metadata')
  return { submitted, meta: result.meta, result, code: result.meta.TransactionResult }
}

async function isKnown(blob: string): Promise<boolean> {
  const asked = client.request({ command: 'tx', transaction: hashes.hashSignedTx(blob) })
  return asked.then(
    () => true,
    (error) => {
      expect(error.data.error).toBe('txnNotFound')
      return false
    },
  )
}

const balance = (address: string) => devnet.balance('XRP', 'XRP', address)
const head = () => client.getLedgerIndex()

async function overHttp(method: string, params: object = {}) {
  const body = JSON.stringify({ method, params: [params] })
  const response = await fetch(info().rpcUrl, { method: 'POST', body })
  return ((await response.json()) as { result: Record<string, unknown> }).result
}

describe('what a client does', () => {
  test('a payment is filled in, signed, submitted, and waited for until it is validated', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('XRP')
    devnet.resumeMining('XRP')
    const { result } = await client.submitAndWait(payment(sender, to, '2000000'), { wallet: sender })
    devnet.pauseMining('XRP')
    expect(result).toMatchObject({
      validated: true,
      tx_json: { NetworkID: info().networkId, DeliverMax: '2000000' },
      meta: { TransactionResult: 'tesSUCCESS', delivered_amount: '2000000' },
    })
    if (typeof result.meta !== 'object') throw new Error('there is metadata')
    expect(getBalanceChanges(result.meta)).toContainEqual({
      account: to,
      balances: [{ currency: 'XRP', value: '2' }],
    })
    expect([await client.getXrpBalance(to), await balance(to)]).toEqual([2, 2_000_000n])
  })

  test('an unvalidated payment shows in the current ledger and nowhere else', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const blob = await signed(sender, payment(sender, to, '2000000'))
    expect(await submit(blob)).toBe('tesSUCCESS')
    const found = await client.request({ command: 'tx', transaction: hashes.hashSignedTx(blob) })
    expect(found.result.validated).toBe(false)
    const account_info = { command: 'account_info', account: to } as const
    const current = await client.request({ ...account_info, ledger_index: 'current' })
    expect(current.result.account_data.Balance).toBe('2000000')
    const validated = client.request({ ...account_info, ledger_index: 'validated' })
    await expect(validated).rejects.toMatchObject({ data: { error: 'actNotFound' } })
    expect(await balance(to)).toBe(0n)
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(2_000_000n)
  })

  test('the hash of a ledger is what the client library makes of its transactions and header', async () => {
    const [one, other] = [await funded(), await funded()]
    for (const [wallet, to] of [
      [one, other.address],
      [other, await devnet.freshAddress('XRP')],
    ] as const)
      await submit(await signed(wallet, payment(wallet, to, '1000000')))
    await devnet.mine('XRP', 1)
    const { ledger } = await overHttp('ledger', {
      ledger_index: 'validated',
      transactions: true,
      expand: true,
    })
    const { transactions, ...header } = ledger as { transactions: Record<string, unknown>[] }
    expect(transactions).toHaveLength(2)
    // The library does not know this field, which servers add to what they answer.
    const listed = transactions.map(({ DeliverMax: _, ...transaction }) => transaction)
    const whole = { ...header, transactions: listed } as unknown as Parameters<typeof hashes.hashLedger>[0]
    const { ledger_hash } = header as unknown as { ledger_hash: string }
    expect(hashes.hashLedger(whole, { computeTreeHashes: false })).toBe(ledger_hash)
    expect(hashes.hashTxTree(listed as never)).toBe(whole.transaction_hash)
  })

  test('each ledger names the one before it, and closes later', async () => {
    await devnet.mine('XRP', 5)
    const last = await head()
    for (let index = last - 4; index <= last; index++) {
      const ledgers = [index - 1, index].map((ledger_index) =>
        client.request({ command: 'ledger', ledger_index }),
      )
      const [before, after] = await Promise.all(ledgers)
      expect(after?.result.ledger.parent_hash).toBe(before?.result.ledger_hash)
      expect(after?.result.ledger.parent_close_time).toBe(before?.result.ledger.close_time)
      expect(after?.result.ledger.close_time).toBeGreaterThan(before?.result.ledger.close_time ?? 0)
    }
    const beyond = client.request({ command: 'ledger', ledger_index: last + 1 })
    await expect(beyond).rejects.toMatchObject({ data: { error: 'lgrNotFound' } })
  })

  test('what an account held is told at every earlier ledger', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const first = await head()
    for (let count = 1; count <= 3; count++) await enter(sender, payment(sender, to, '1000000'))
    for (let count = 1; count <= 3; count++) {
      const held = await client.getXrpBalance(to, { ledger_index: first + count })
      expect(held).toBe(count)
    }
  })

  test('plain HTTP answers the same, in the older words when no version is named', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const { result } = await enter(sender, payment(sender, to, '1500000', { DestinationTag: 7 }))
    const asked = { transaction: result.hash }
    expect(await overHttp('tx', { ...asked, api_version: 2 })).toMatchObject({ ...result, status: 'success' })
    expect(await overHttp('tx', asked)).toMatchObject({
      Amount: '1500000',
      DestinationTag: 7,
      hash: result.hash,
      validated: true,
      meta: { delivered_amount: '1500000' },
    })
    const tx_blob = await signed(sender, payment(sender, to, '1500000'))
    expect(await overHttp('submit', { tx_blob })).toMatchObject({
      status: 'success',
      engine_result: 'tesSUCCESS',
      engine_result_code: 0,
      tx_json: { hash: hashes.hashSignedTx(tx_blob), Amount: '1500000' },
    })
    const unknown = await overHttp('tx', { transaction: '00'.repeat(32) })
    expect(unknown).toMatchObject({ status: 'error', error: 'txnNotFound' })
    expect(await overHttp('no_such_thing')).toMatchObject({ status: 'error', error: 'unknownCmd' })
    expect(await overHttp('fee')).toMatchObject({ drops: { base_fee: '10' } })
    expect(await overHttp('ledger_current')).toMatchObject({ ledger_current_index: (await head()) + 1 })
  })

  test('what is not found is not found in ledgers that are named', async () => {
    const last = await head()
    const account = await devnet.freshAddress('XRP')
    const noAccount = client.request({ command: 'account_info', account, ledger_index: last })
    await expect(noAccount).rejects.toMatchObject({
      data: { error: 'actNotFound', ledger_index: last, validated: true },
    })
    for (const [max_ledger, searched_all] of [
      [last, true],
      [last + 1, false],
    ] as const) {
      const transaction = '00'.repeat(32)
      const noTransaction = client.request({ command: 'tx', transaction, min_ledger: 1, max_ledger })
      await expect(noTransaction).rejects.toMatchObject({ data: { error: 'txnNotFound', searched_all } })
    }
  })

  test('the history of an account is told page by page, from either end', async () => {
    const [sender, to] = [await funded(), (await funded(1)).address]
    for (let drops = 1; drops <= 5; drops++) {
      await submit(await signed(sender, payment(sender, to, String(drops))))
      if (drops % 2 === 0) await devnet.mine('XRP', 1)
    }
    await devnet.mine('XRP', 1)
    for (const forward of [true, false]) {
      const request = { command: 'account_tx', account: to, limit: 2, forward } as const
      const pages = [(await client.request(request)).result]
      for (let marker = pages[0]?.marker; marker !== undefined; marker = pages.at(-1)?.marker)
        pages.push((await client.request({ ...request, marker })).result)
      const told = pages.flatMap(({ transactions }) => transactions)
      const amounts = told.map(({ tx_json }) => (tx_json as unknown as { DeliverMax: string }).DeliverMax)
      const expected = ['1000000', '1', '2', '3', '4', '5']
      expect(amounts).toEqual(forward ? expected : expected.reverse())
      expect(pages).toHaveLength(3)
    }
  })

  test('subscribers are told of each ledger and of the transactions they asked for', async () => {
    const [sender, watched] = [await funded(), await funded()]
    const listener = await connect()
    const said: string[] = []
    listener.on('ledgerClosed', ({ ledger_index, txn_count }) => said.push(`${ledger_index}: ${txn_count}`))
    listener.on('transaction', ({ hash, validated }) => said.push(`${hash} ${validated}`))
    await listener.request({ command: 'subscribe', streams: ['ledger'], accounts: [watched.address] })
    const { result } = await enter(sender, payment(sender, watched.address, '1'))
    await enter(sender, payment(sender, await devnet.freshAddress('XRP'), '1000000'))
    const last = await head()
    await expect.poll(() => said).toEqual([`${last - 1}: 1`, `${result.hash} true`, `${last}: 1`])
    await listener.request({ command: 'unsubscribe', streams: ['ledger'], accounts: [watched.address] })
    await devnet.mine('XRP', 1)
    await listener.request({ command: 'ping' })
    expect(said).toHaveLength(3)
    await listener.disconnect()
  })

  test('two clients at once: sixty payments all arrive, each once', async () => {
    const to = (await funded(1)).address
    const pair = [client, await connect()]
    const all = pair.map(async (each) => {
      const wallet = await funded()
      const filled = await each.autofill(payment(wallet, to, '1000'))
      const blobs = Array.from({ length: 30 }, (_, index) => {
        return signAsIs({ ...filled, Sequence: (filled.Sequence ?? 0) + index }, wallet)
      })
      const answers = await Promise.all(blobs.map((tx_blob) => each.request({ command: 'submit', tx_blob })))
      expect(answers.map(({ result }) => result.engine_result)).toEqual(blobs.map(() => 'tesSUCCESS'))
    })
    await Promise.all(all)
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(1_060_000n)
    await pair[1]?.disconnect()
  })
})

describe('what a transaction may be refused for', () => {
  test.each([
    ['telINSUF_FEE_P', { Fee: '9' }],
    ['telREQUIRES_NETWORK_ID', { NetworkID: undefined }],
    ['telWRONG_NETWORK', { NetworkID: 31_345 }],
    ['tefNO_TICKET', { Sequence: 0, TicketSequence: 1 }],
  ])('%s, and it is tried again in vain, then forgotten', async (code, changes) => {
    const [sender, to] = [await funded(), await funded()]
    const before = await balance(sender.address)
    const blob = await signed(sender, payment(sender, to.address, '1'), changes)
    expect(await submit(blob)).toBe(code)
    await devnet.mine('XRP', HELD_LEDGERS + 1)
    expect(await isKnown(blob)).toBe(true)
    await devnet.mine('XRP', 1)
    expect([await isKnown(blob), await balance(sender.address)]).toEqual([false, before])
  })

  test.each([
    ['tefPAST_SEQ', { Sequence: 1 }],
    ['tefMAX_LEDGER', { LastLedgerSequence: 1 }],
    ['temBAD_AMOUNT', { Amount: '0' }],
    ['temBAD_SEND_XRP_PARTIAL', { Flags: PaymentFlags.tfPartialPayment }],
    ['temBAD_SEND_XRP_MAX', { SendMax: '5' }],
    ['temDISABLED', { TransactionType: 'EscrowCancel' }],
  ])('%s, and it is never tried again', async (code, changes) => {
    const [sender, to] = [await funded(), await funded()]
    const before = await balance(sender.address)
    const blob = await signed(sender, payment(sender, to.address, '1'), changes)
    expect(await submit(blob)).toBe(code)
    expect(await isKnown(blob)).toBe(false)
    await devnet.mine('XRP', 1)
    expect([await isKnown(blob), await balance(sender.address)]).toEqual([false, before])
  })

  test('temREDUNDANT to oneself, tefBAD_AUTH by the key of another, terNO_ACCOUNT from nowhere', async () => {
    const [sender, other] = [await funded(), await funded()]
    expect(await submit(await signed(sender, payment(sender, sender.address, '1')))).toBe('temREDUNDANT')
    expect(await submit(await signed(other, payment(sender, other.address, '1')))).toBe('tefBAD_AUTH')
    const nobody = Wallet.generate()
    const fields = { Sequence: 1, Fee: '10', NetworkID: info().networkId }
    const blob = signAsIs({ ...payment(nobody, sender.address, '1'), ...fields }, nobody)
    expect(await submit(blob)).toBe('terNO_ACCOUNT')
  })

  test('a changed byte breaks the signature, and bytes that are no transaction are refused', async () => {
    const sender = await funded()
    const filled = await client.autofill(payment(sender, await devnet.freshAddress('XRP'), '1000000'))
    const { tx_blob } = sender.sign(filled)
    const changed = encode({ ...sender.sign(filled), ...filled, Amount: '9000000', TxnSignature: 'AB' })
    for (const blob of [tx_blob.replace('000F4240', '000F4241'), changed, 'ABCDEF', ''])
      await expect(submit(blob)).rejects.toMatchObject({ data: { error: 'invalidTransaction' } })
  })

  test('the same bytes again: tefALREADY while they wait, tefPAST_SEQ once they are in, and paid once', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const blob = await signed(sender, payment(sender, to, '1000000'))
    expect([await submit(blob), await submit(blob)]).toEqual(['tesSUCCESS', 'tefALREADY'])
    await devnet.mine('XRP', 1)
    expect(await submit(blob)).toBe('tefPAST_SEQ')
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(1_000_000n)
  })

  test('terPRE_SEQ waits for the one before it, and is thrown away after its last ledger', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const tx = payment(sender, to, '1000000')
    const { Sequence = 0 } = await client.autofill(tx)
    const second = await signed(sender, tx, { Sequence: Sequence + 1 })
    const last = await signed(sender, tx, { Sequence: Sequence + 3, LastLedgerSequence: (await head()) + 2 })
    expect([await submit(second), await submit(last)]).toEqual(['terPRE_SEQ', 'terPRE_SEQ'])
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(0n)
    expect(await submit(await signed(sender, tx, { Sequence }))).toBe('tesSUCCESS')
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(2_000_000n)
    expect(await submit(await signed(sender, tx, { Sequence: Sequence + 2 }))).toBe('tesSUCCESS')
    await devnet.mine('XRP', 1)
    expect([await balance(to), await isKnown(last)]).toEqual([3_000_000n, false])
  })

  test('one that waited in vain until its last ledger is forgotten', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const tx = payment(sender, to, '1000000')
    const { Sequence = 0 } = await client.autofill(tx)
    const LastLedgerSequence = (await head()) + 2
    const early = await signed(sender, tx, { Sequence: Sequence + 1, LastLedgerSequence })
    await submit(early)
    await devnet.mine('XRP', 1)
    expect(await isKnown(early)).toBe(true)
    await devnet.mine('XRP', 1)
    expect(await isKnown(early)).toBe(false)
    await submit(await signed(sender, tx, { Sequence }))
    await devnet.mine('XRP', 2)
    expect(await balance(to)).toBe(1_000_000n)
  })
})

describe('what a server keeps of what it has refused', () => {
  async function refuse(code: string, more: object = {}, changes: object = {}) {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const blob = await signed(sender, payment(sender, to, '1000000'), changes)
    devnet.trouble('XRP', { submits: [{ failWith: code }] })
    const { result } = await client.request({ command: 'submit', tx_blob: blob, ...more })
    expect(result.engine_result).toBe(code)
    return { sender, to, blob, result }
  }

  test.each(['telINSUF_FEE_P', 'telCAN_NOT_QUEUE', 'tefFAILURE', 'terRETRY', 'terQUEUED'])(
    '%s: it is in the ledger after this one, and paid once',
    async (code) => {
      const { to, blob, result } = await refuse(code)
      const isQueued = code === 'terQUEUED'
      expect(result).toMatchObject({
        accepted: true,
        applied: false,
        broadcast: isQueued,
        kept: true,
        queued: isQueued,
      })
      await devnet.mine('XRP', 1)
      expect([await isKnown(blob), await balance(to)]).toEqual([true, 0n])
      await devnet.mine('XRP', 1)
      expect(await balance(to)).toBe(1_000_000n)
      expect(await submit(blob)).toBe('tefPAST_SEQ')
      await devnet.mine('XRP', 2)
      expect(await balance(to)).toBe(1_000_000n)
    },
  )

  test('what is queued stands in the queue of its account', async () => {
    const { sender } = await refuse('terQUEUED')
    const request = { command: 'account_info', account: sender.address, ledger_index: 'current', queue: true }
    const queue = async () => {
      const { result } = await client.request(request as AccountInfoRequest)
      return { next: result.account_data.Sequence, ...result.queue_data }
    }
    const { next, ...queued } = await queue()
    expect(queued).toMatchObject({ txn_count: 1, transactions: [{ seq: next, fee: '12' }] })
    await devnet.mine('XRP', 1)
    expect(await queue(), 'it is in the open ledger').toEqual({ next: next + 1, txn_count: 0 })
  })

  test.each(['telINSUF_FEE_P', 'tefFAILURE', 'terRETRY'])(
    '%s and fail_hard: it is kept nowhere',
    async (code) => {
      const { to, blob, result } = await refuse(code, { fail_hard: true })
      expect(result).toMatchObject({ accepted: false, applied: false, broadcast: false, kept: false })
      expect(await isKnown(blob)).toBe(false)
      await devnet.mine('XRP', 2)
      expect(await balance(to)).toBe(0n)
    },
  )

  test('its last ledger is over before it is tried again', async () => {
    const { to, blob } = await refuse('telINSUF_FEE_P', {}, { LastLedgerSequence: (await head()) + 2 })
    await devnet.mine('XRP', 2)
    expect([await isKnown(blob), await balance(to)]).toEqual([false, 0n])
  })

  test('another has taken its sequence by then', async () => {
    const { sender, to, blob } = await refuse('telINSUF_FEE_P')
    const other = await devnet.freshAddress('XRP')
    expect(await submit(await signed(sender, payment(sender, other, '1000000')))).toBe('tesSUCCESS')
    await devnet.mine('XRP', 2)
    expect([await isKnown(blob), await balance(to), await balance(other)]).toEqual([false, 0n, 1_000_000n])
  })

  test('one that waits for an earlier sequence is tried for as long, and no longer', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const tx = payment(sender, to, '1000000')
    const { Sequence = 0 } = await client.autofill(tx)
    const blobOf = (sequence: number) =>
      signed(sender, tx, { LastLedgerSequence: undefined, Sequence: sequence })
    for (const [first, ledgers, paid] of [
      [Sequence, HELD_LEDGERS, 2_000_000n],
      [Sequence + 2, HELD_LEDGERS + 1, 3_000_000n],
    ] as const) {
      expect(await submit(await blobOf(first + 1))).toBe('terPRE_SEQ')
      await devnet.mine('XRP', ledgers)
      expect(await submit(await blobOf(first))).toBe('tesSUCCESS')
      await devnet.mine('XRP', 1)
      expect(await balance(to)).toBe(paid)
    }
  })

  test('handed over again it is kept for as long again', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const tx = payment(sender, to, '1000000')
    const { Sequence = 0 } = await client.autofill(tx)
    const [first, second] = await Promise.all(
      [Sequence, Sequence + 1].map((sequence) =>
        signed(sender, tx, { LastLedgerSequence: undefined, Sequence: sequence }),
      ),
    )
    for (let handed = 0; handed < 2; handed += 1) {
      expect(await submit(second as string)).toBe('terPRE_SEQ')
      await devnet.mine('XRP', HELD_LEDGERS - 1)
    }
    expect(await submit(first as string)).toBe('tesSUCCESS')
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(2_000_000n)
  })

  test('what is in the open ledger stays there when it is handed over again', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('XRP')]
    const blob = await signed(sender, payment(sender, to, '1000000'))
    expect([await submit(blob), await submit(blob)]).toEqual(['tesSUCCESS', 'tefALREADY'])
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(1_000_000n)
  })
})

describe('what fails in the ledger and costs the fee', () => {
  const unfunded = Wallet.generate().address

  test.each([
    ['tecNO_DST_INSUF_XRP', async () => ({ to: unfunded, drops: '999999' })],
    ['tecUNFUNDED_PAYMENT', async () => ({ to: (await funded()).address, drops: '99000001' })],
    [
      'tecDST_TAG_NEEDED',
      async () => ({ to: await accountWith(AccountSetAsfFlags.asfRequireDest), drops: '1' }),
    ],
    [
      'tecNO_PERMISSION',
      async () => ({ to: await accountWith(AccountSetAsfFlags.asfDepositAuth), drops: '1' }),
    ],
  ])('%s', async (code, make) => {
    const sender = await funded()
    const { to, drops } = await make()
    const before = await balance(to)
    const entered = await enter(sender, payment(sender, to, drops), { Fee: '25' })
    expect([entered.submitted, entered.code, entered.result.validated]).toEqual([code, code, true])
    expect(entered.meta.delivered_amount).toBeUndefined()
    expect([await balance(to), await balance(sender.address)]).toEqual([before, 99_999_975n])
    const { result } = await client.request({ command: 'account_info', account: sender.address })
    expect(result.account_data.Sequence).toBe((entered.result.tx_json.Sequence ?? 0) + 1)
  })

  test('with fail_hard it is not kept at all', async () => {
    const sender = await funded()
    const tx_blob = await signed(sender, payment(sender, unfunded, '999999'))
    const { result } = await client.request({ command: 'submit', tx_blob, fail_hard: true })
    expect([result.engine_result, result.kept, await isKnown(tx_blob)]).toEqual([
      'tecNO_DST_INSUF_XRP',
      false,
      false,
    ])
  })

  test('an account that wants a tag takes a payment with one, until it wants none', async () => {
    const wallet = await funded()
    const asfRequireDest = AccountSetAsfFlags.asfRequireDest
    const change = { TransactionType: 'AccountSet', Account: wallet.address } as const
    await enter(wallet, { ...change, SetFlag: asfRequireDest })
    const { result } = await client.request({ command: 'account_info', account: wallet.address })
    expect(result.account_flags).toMatchObject({ requireDestinationTag: true, depositAuth: false })
    const sender = await funded()
    const tagged = payment(sender, wallet.address, '1', { DestinationTag: 0 })
    expect((await enter(sender, tagged)).code).toBe('tesSUCCESS')
    await expect(devnet.send('XRP', 'XRP', wallet.address, 1n)).rejects.toThrow('tecDST_TAG_NEEDED')
    await enter(wallet, { ...change, ClearFlag: asfRequireDest })
    expect((await enter(sender, payment(sender, wallet.address, '1'))).code).toBe('tesSUCCESS')
  })

  async function accountWith(SetFlag: AccountSetAsfFlags): Promise<string> {
    const wallet = await funded()
    await enter(wallet, { TransactionType: 'AccountSet', Account: wallet.address, SetFlag })
    return wallet.address
  }
})

describe('what looks like money and is none', () => {
  /** Twenty bytes that begin like the letters X, R, P: what a careless reader shows as XRP. */
  const FALSE_XRP = `${Buffer.from('XRP').toString('hex').toUpperCase()}${'00'.repeat(17)}`

  async function issued(currency: string, value: string) {
    const [issuer, holder, receiver] = [await funded(), await funded(), await funded()]
    const of = { currency, issuer: issuer.address }
    const trust = { TransactionType: 'TrustSet', LimitAmount: { ...of, value: '1000000' } } as const
    for (const wallet of [holder, receiver]) await enter(wallet, { ...trust, Account: wallet.address })
    const tx = { ...payment(issuer, holder.address, '1'), Amount: { ...of, value } }
    expect((await enter(issuer, tx)).code).toBe('tesSUCCESS')
    return { issuer, holder, receiver, of }
  }

  test.each(['USD', FALSE_XRP])(
    'issued %s moves between those who trust its issuer, and no XRP moves',
    async (code) => {
      const { issuer, holder, receiver, of } = await issued(code, '100')
      const before = await balance(receiver.address)
      const amount = { ...of, value: '12.5' }
      const { meta } = await enter(holder, { ...payment(holder, receiver.address, '1'), Amount: amount })
      expect(meta.delivered_amount).toEqual(amount)
      expect(await balance(receiver.address)).toBe(before)
      for (const [wallet, value] of [
        [holder, '87.5'],
        [receiver, '12.5'],
      ] as const) {
        const { result } = await client.request({ command: 'account_lines', account: wallet.address })
        expect(result.lines).toMatchObject([{ currency: code, account: of.issuer, balance: value }])
      }
      const beyondTheLimit = {
        ...payment(issuer, receiver.address, '1'),
        Amount: { ...of, value: '1000000' },
      }
      expect((await enter(issuer, beyondTheLimit)).code).toBe('tecPATH_PARTIAL')
      const stranger = await funded()
      const toStranger = { ...payment(holder, stranger.address, '1'), Amount: amount }
      expect((await enter(holder, toStranger)).code).toBe('tecPATH_DRY')
    },
  )

  test('a partial payment delivers less than it says, of something issued', async () => {
    const { holder, receiver, of } = await issued('USD', '5')
    const Amount = { ...of, value: '1000' }
    const tx = { ...payment(holder, receiver.address, '1'), Amount }
    expect((await enter(holder, tx)).code).toBe('tecPATH_PARTIAL')
    const { code, meta } = await enter(holder, tx, { Flags: PaymentFlags.tfPartialPayment })
    expect([code, meta.delivered_amount]).toEqual(['tesSUCCESS', { ...of, value: '5' }])
  })

  test('a partial payment says a million XRP and delivers one drop', async () => {
    const { issuer, holder, of } = await issued('USD', '5')
    await enter(issuer, {
      TransactionType: 'OfferCreate',
      Account: issuer.address,
      TakerGets: '7000',
      TakerPays: { ...of, value: '7' },
    })
    const victim = (await funded(1)).address
    const tx = payment(holder, victim, '1000000000000', { SendMax: { ...of, value: '0.001' } })
    expect((await enter(holder, tx)).code).toBe('tecPATH_PARTIAL')
    const wantsMore = { Flags: PaymentFlags.tfPartialPayment, DeliverMin: '2' }
    expect((await enter(holder, tx, wantsMore)).code).toBe('tecPATH_PARTIAL')
    const { code, meta, result } = await enter(holder, tx, { Flags: PaymentFlags.tfPartialPayment })
    expect([code, meta.delivered_amount]).toEqual(['tesSUCCESS', '1'])
    expect(result.tx_json).toMatchObject({ DeliverMax: '1000000000000' })
    expect(await balance(victim)).toBe(1_000_001n)
    expect(getBalanceChanges(meta)).toContainEqual({
      account: victim,
      balances: [{ currency: 'XRP', value: '0.000001' }],
    })
  })

  test('the cheaper offer is bought first; one that is bought up is gone', async () => {
    const { issuer, holder, of } = await issued('USD', '5')
    for (const [TakerGets, value] of [
      ['1000', '2'],
      ['1000', '1'],
    ] as const) {
      const TakerPays = { ...of, value }
      await enter(issuer, { TransactionType: 'OfferCreate', Account: issuer.address, TakerGets, TakerPays })
    }
    const victim = (await funded(1)).address
    const buy = (value: string) => {
      const tx = payment(holder, victim, '3000', { SendMax: { ...of, value } })
      return enter(holder, tx, { Flags: PaymentFlags.tfPartialPayment })
    }
    expect((await buy('1')).meta.delivered_amount, 'the cheaper one').toBe('1000')
    expect((await buy('4')).meta.delivered_amount).toBe('1000')
    expect((await buy('4')).code).toBe('tecPATH_DRY')
    const { result } = await client.request({ command: 'account_lines', account: holder.address })
    expect(result.lines).toMatchObject([{ balance: '2' }])
  })
})

describe('XRP that arrives and is no payment', () => {
  test('an account that is deleted leaves what it has to another, with a tag, and can be opened again', async () => {
    const [leaver, heir] = [await funded(), (await funded(1)).address]
    const deletion = {
      TransactionType: 'AccountDelete',
      Account: leaver.address,
      Destination: heir,
      DestinationTag: 7,
    } as const
    expect((await enter(leaver, deletion)).code).toBe('tecTOO_SOON')
    await devnet.mine('XRP', 256)
    const { code, meta, result } = await enter(leaver, deletion)
    expect([code, meta.delivered_amount]).toEqual(['tesSUCCESS', '99600000'])
    expect(result.tx_json).toMatchObject({ TransactionType: 'AccountDelete', DestinationTag: 7 })
    expect([await balance(heir), await balance(leaver.address)]).toEqual([100_600_000n, 0n])
    const gone = client.request({ command: 'account_info', account: leaver.address })
    await expect(gone).rejects.toMatchObject({ data: { error: 'actNotFound' } })
    await devnet.send('XRP', 'XRP', leaver.address, 1_000_000n)
    await devnet.mine('XRP', 1)
    const { result: again } = await client.request({ command: 'account_info', account: leaver.address })
    expect(again.account_data.Sequence).toBe(await head())
  })

  test('one that owns something, or has nobody to leave it to, stays', async () => {
    const [leaver, issuer] = [await funded(), await funded()]
    const deletion = { TransactionType: 'AccountDelete', Account: leaver.address } as const
    const to = await devnet.freshAddress('XRP')
    expect((await enter(leaver, { ...deletion, Destination: to })).code).toBe('tecNO_DST')
    const LimitAmount = { currency: 'USD', issuer: issuer.address, value: '1' }
    await enter(leaver, { TransactionType: 'TrustSet', Account: leaver.address, LimitAmount })
    const late = { ...deletion, Destination: issuer.address }
    // The client would not even sign it: so the fields are as it makes them for a payment.
    const { Sequence } = await client.autofill(payment(leaver, issuer.address, '1'))
    const fields = { ...late, Sequence, NetworkID: info().networkId, Fee: '200000' }
    expect(await submit(signAsIs({ ...fields, Fee: '199999' }, leaver))).toBe('telINSUF_FEE_P')
    expect(await submit(signAsIs(fields, leaver))).toBe('tecHAS_OBLIGATIONS')
  })
})

describe('what the devnet does with it', () => {
  test('the faucet pays with a tag, said beside the address or inside it', async () => {
    const to = (await funded(1)).address
    for (const [address, tag] of [
      [to, '4294967295'],
      [classicAddressToXAddress(to, 4294967295, true), undefined],
    ] as const) {
      const { txHash } = await devnet.send('XRP', 'XRP', address, 1n, 1, tag)
      await devnet.mine('XRP', 1)
      const { result } = await client.request({ command: 'tx', transaction: txHash })
      expect(result).toMatchObject({ validated: true, tx_json: { DestinationTag: 4294967295 } })
    }
    const inside = classicAddressToXAddress(to, 5, true)
    await expect(devnet.send('XRP', 'XRP', inside, 1n, 1, '6')).rejects.toThrow('tag 5, not 6')
    for (const tag of ['4294967296', '-1', 'memo'])
      await expect(devnet.send('XRP', 'XRP', to, 1n, 1, tag)).rejects.toThrow('destination tag')
    await expect(devnet.send('XRP', 'BTC', to, 1n)).rejects.toThrow('no BTC on XRP')
    expect(await devnet.balance('XRP', 'XRP', inside)).toBe(await balance(to))
  })

  test('memos stay what they were', async () => {
    const sender = await funded()
    const Memos = [{ Memo: { MemoData: Buffer.from('order 7 🦊').toString('hex').toUpperCase() } }]
    const { result } = await enter(sender, payment(sender, (await funded()).address, '1', { Memos }))
    expect(result.tx_json.Memos).toEqual(Memos)
  })

  test('a closed ledger is final, and no payment is replaced', async () => {
    await expect(devnet.reorg('XRP', 1)).rejects.toThrow('final')
    const { txHash } = await devnet.send('XRP', 'XRP', await devnet.freshAddress('XRP'), 2_000_000n)
    await expect(devnet.replace(txHash)).rejects.toThrow('no network')
  })
})
