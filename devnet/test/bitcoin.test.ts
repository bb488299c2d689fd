import { createHash, randomBytes } from 'node:crypto'
import { SigHash } from '@scure/btc-signer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Devnet, RpcError, startDevnet } from '../src/index.ts'
import {
  coinOf,
  dataScript,
  forge,
  keyKinds,
  paidOwner,
  paymentTo,
  type Spendable,
  spend,
  tamper,
} from './bitcoin_payers.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: a Bitcoin does what the devnet promises, and answers in bitcoind's words, whatever stands behind it.
 * How: the same on a real bitcoind and on the simulated one; transactions are made by the field's library.
 */
describe.each(['bitcoind', 'simulated'] as const)('bitcoin, %s', (backing) => {
  const folder = makeTemporaryFolder()
  let devnet: Devnet

  beforeAll(async () => {
    devnet = await startDevnet({
      dataDir: folder.path,
      networks: ['BTC'],
      mining: 'manual',
      ...(backing === 'simulated' && { bitcoin: backing }),
    })
    expect(devnet.networks.BTC?.backing).toBe(backing)
  })

  afterAll(async () => {
    await devnet?.stop()
    folder.remove()
  })

  const rpc = <T>(method: string, params: unknown[] = []) => devnet.bitcoin.rpc<T>(method, params)
  const mempool = () => rpc<string[]>('getrawmempool')
  const balance = (address: string) => devnet.balance('BTC', 'BTC', address)
  const fresh = () => devnet.freshAddress('BTC')
  const submit = (hex: string) => rpc<string>('sendrawtransaction', [hex])
  const coin = (sats = 100_000n) => paidOwner(devnet, 'segwit', sats)

  /** `-25 bad-txns-inputs-missingorspent`; what is fine is `taken`. */
  async function verdict(asking: Promise<unknown>): Promise<string> {
    try {
      await asking
      return 'taken'
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return `${error.code} ${error.message.slice(error.message.indexOf(': ') + 2)}`
    }
  }

  async function pay(from: Spendable, feeSats: bigint) {
    return spend([from], [{ address: await fresh(), sats: from.sats - feeSats }])
  }

  test('a reorg returns the payment to the mempool and makes a longer, empty branch', async () => {
    const to = await fresh()
    const { txHash } = await devnet.send('BTC', 'BTC', to, 50_000n)
    await devnet.mine('BTC', 3)
    const height = await rpc<number>('getblockcount')
    const oldTip = await rpc<string>('getbestblockhash')
    await devnet.reorg('BTC', 3)
    expect(await rpc('getblockcount')).toBe(height + 1)
    expect((await rpc<{ confirmations: number }>('getblockheader', [oldTip])).confirmations).toBe(-1)
    expect(await mempool()).toContain(txHash)
    expect(await balance(to)).toBe(0n)
    await devnet.mine('BTC', 1)
    expect(await balance(to)).toBe(50_000n)
  })

  test('a replaced payment never arrives, its replacement does', async () => {
    const [to, other] = [await fresh(), await fresh()]
    const { txHash } = await devnet.send('BTC', 'BTC', to, 40_000n)
    const redirected = await devnet.replace(txHash, { to: other })
    expect(await mempool()).not.toContain(txHash)
    const again = await devnet.replace(redirected.txHash)
    await devnet.mine('BTC', 1)
    expect(await balance(to)).toBe(0n)
    expect(await balance(other)).toBe(0n)
    await expect(devnet.replace(again.txHash)).rejects.toThrow('already in a block')
  })

  test('a payment can be replaced by another amount, also a larger one, or a higher fee', async () => {
    for (const [replacement, arrived] of [
      [{ units: 30_000n }, 30_000n],
      [{ units: 1_000_000_000n }, 1_000_000_000n],
      [{ feeBumpOnly: true }, 40_000n],
    ] as const) {
      const to = await fresh()
      const { txHash } = await devnet.send('BTC', 'BTC', to, 40_000n)
      const replaced = await devnet.replace(txHash, replacement)
      expect(replaced.txHash).not.toBe(txHash)
      expect(await mempool()).toEqual([replaced.txHash])
      await devnet.mine('BTC', 1)
      expect(await balance(to)).toBe(arrived)
    }
  })

  test('a payment in many coins is one transaction', async () => {
    const to = await fresh()
    const { txHash } = await devnet.send('BTC', 'BTC', to, 90_000n, 3)
    expect(await mempool()).toEqual([txHash])
    await devnet.mine('BTC', 1)
    const { unspents } = await rpc<{ unspents: { amount: number }[] }>('scantxoutset', [
      'start',
      [`addr(${to})`],
    ])
    expect(unspents.map(({ amount }) => amount)).toEqual([0.0003, 0.0003, 0.0003])
  })

  test.each(keyKinds)('a coin of a %s key is spent by its signature and by no other', async (kind) => {
    const own = await paidOwner(devnet, kind, 100_000n)
    const { hex, txid } = await pay(own, 2_000n)
    const reason = kind === 'taproot' ? 'Invalid Schnorr signature' : 'Signature must be zero'
    expect(await verdict(submit(tamper(hex)))).toContain(`-26 mempool-script-verify-flag-failed (${reason}`)
    const reasons = {
      legacy: 'Script failed an OP_EQUALVERIFY operation',
      'wrapped segwit': 'Script evaluated without error but finished with a false/empty top stack element',
      segwit: 'Script failed an OP_EQUALVERIFY operation',
    }
    if (kind !== 'taproot')
      expect(await verdict(submit(forge(own, kind, await fresh())))).toContain(`(${reasons[kind]})`)
    expect(await submit(hex)).toBe(txid)
    await devnet.mine('BTC', 1)
    expect((await rpc<{ confirmations: number }>('getrawtransaction', [txid, 1])).confirmations).toBe(1)
  })

  test.each(keyKinds)('a signature of a %s key over less than all signs just that', async (kind) => {
    for (const [sighash, isOpen] of [
      [SigHash.ALL_ANYONECANPAY, false],
      [SigHash.NONE, true],
      [SigHash.SINGLE, false],
      [SigHash.SINGLE_ANYONECANPAY, false],
    ] as const) {
      const coins = [await paidOwner(devnet, kind, 60_000n), await paidOwner(devnet, kind, 40_000n)]
      const to = await fresh()
      const outputs = [
        { address: to, sats: 50_000n },
        { address: to, sats: 40_000n },
      ]
      const { hex } = spend(coins, outputs, { sighash })
      const tampered = tamper(hex)
      if (isOpen) expect(await verdict(submit(tampered)), `signed ${sighash}`).toBe('taken')
      else {
        expect(await verdict(submit(tampered)), `signed ${sighash}`).toMatch(/^-26 mempool-script-verify/)
        expect(await verdict(submit(hex)), `signed ${sighash}`).toBe('taken')
      }
      await devnet.mine('BTC', 1)
      expect(await balance(to)).toBe(isOpen ? 89_998n : 90_000n)
    }
  })

  test('coins of every kind are spent together', async () => {
    const coins = await Promise.all(keyKinds.map((kind) => paidOwner(devnet, kind, 50_000n)))
    const to = await fresh()
    const { hex } = spend(coins, [{ address: to, sats: 190_000n }])
    await submit(hex)
    await devnet.mine('BTC', 1)
    expect(await balance(to)).toBe(190_000n)
  })

  test('what a node does not take it refuses by code and name', async () => {
    const own = await coin()
    const [to, other] = [await fresh(), await fresh()]
    const paying = (
      sats: bigint,
      more: Parameters<typeof spend>[1] = [],
      rest: Parameters<typeof spend>[2] = {},
    ) => submit(spend([own], [{ address: to, sats }, ...more], rest).hex)
    // The least fee is one satoshi a virtual byte, and a signature is a byte shorter now and then.
    const tooCheap = (sats: bigint): [() => Promise<unknown>, string] => {
      const { hex, vsize } = spend([own], [{ address: to, sats }])
      return [() => submit(hex), `-26 min relay fee not met, ${own.sats - sats} < ${vsize}`]
    }
    const height = await rpc<number>('getblockcount')
    const gone = { ...own, txid: '11'.repeat(32) }
    const refusals: [() => Promise<unknown>, string][] = [
      tooCheap(100_000n),
      tooCheap(99_950n),
      [
        () => submit(tamper(spend([own], [{ address: to, sats: 99_000n }]).hex, 1_001n)),
        '-26 bad-txns-in-belowout, value in (0.001) < value out (0.00100001)',
      ],
      [() => paying(90_000n, [{ address: other, sats: 293n }]), '-26 dust-nonanchor'],
      [() => paying(90_000n, [{ script: dataScript(100), sats: 0n }]), '-26 scriptpubkey'],
      [
        () => paying(90_000n, [{ script: Uint8Array.from([0x6a, 0x01, 0x07]), sats: 5n }]),
        '-25 Unspendable output exceeds maximum configured by user (maxburnamount)',
      ],
      [
        () => paying(90_000n, [{ script: Uint8Array.from([0x61, 0x61, 0x51]), sats: 1_000n }]),
        '-26 scriptpubkey',
      ],
      [() => paying(90_000n, [], { lockTime: height + 1 }), '-26 non-final'],
      [() => paying(90_000n, [], { sequence: 50 }), '-26 non-BIP68-final'],
      [
        () => submit(spend([gone], [{ address: to, sats: 90_000n }]).hex),
        '-25 bad-txns-inputs-missingorspent',
      ],
      [() => submit('00'), '-22 TX decode failed. Make sure the tx has at least one input.'],
      [
        () => rpc('sendrawtransaction', [7]),
        '-3 Wrong type passed:\n{\n    "Position 1 (hexstring)": "JSON value of type number is not of expected type string"\n}',
      ],
    ]
    for (const [ask, reason] of refusals) expect(await verdict(ask())).toBe(reason)
    const [dear] = [await coin(10_000_000n)]
    expect(await verdict(submit((await pay(dear, 5_000_000n)).hex))).toBe(
      '-25 Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)',
    )
    expect(await verdict(paying(90_000n, [], { lockTime: height }))).toBe('taken')
    await devnet.mine('BTC', 1)
  })

  test('what is sent again is taken while it waits, and named when it is mined', async () => {
    const { hex, txid } = await pay(await coin(), 1_000n)
    expect([await submit(hex), await submit(hex)]).toEqual([txid, txid])
    await devnet.mine('BTC', 1)
    expect(await verdict(submit(hex))).toBe('-27 Transaction outputs already in utxo set')
  })

  test('a block reward can be spent a hundred blocks later', async () => {
    const key = Uint8Array.from(randomBytes(32))
    const { address } = paymentTo('segwit', key)
    const [hash] = await rpc<string[]>('generatetoaddress', [1, address])
    const { tx } = await rpc<{ tx: string[] }>('getblock', [hash])
    const reward = await coinOf(devnet.bitcoin.rpc, tx[0] ?? '', 'segwit', key)
    const { hex } = await pay(reward, 1_000n)
    const young = '-26 bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth'
    expect(await verdict(submit(hex))).toBe(`${young} 1`)
    await devnet.mine('BTC', 98)
    expect(await verdict(submit(hex))).toBe(`${young} 99`)
    await devnet.mine('BTC', 1)
    expect(await verdict(submit(hex))).toBe('taken')
    await devnet.reorg('BTC', 2)
    expect(await mempool(), 'too young again, when two blocks were gone').toEqual([])
    expect(await verdict(submit(hex))).toBe('taken')
    await devnet.mine('BTC', 1)
  })

  test('a replacement pays more in all and more for each byte', async () => {
    const refused = '-26 insufficient fee, rejecting replacement [0-9a-f]{64}'
    const inBitcoin = (sats: number) => (sats / 1e8).toFixed(8)
    const shortly = (sats: number) => inBitcoin(sats).replace(/0+$/, '')
    // A signature is a byte shorter now and then, and the rate with it another.
    const feerate = (sats: number, { vsize }: { vsize: number }) =>
      inBitcoin(Math.floor((sats * 1_000) / vsize))
    const [own, other] = [await coin(), await coin()]
    const first = await pay(own, 1_000n)
    await submit(first.hex)
    const lower = await pay(own, 980n)
    expect(await verdict(submit(lower.hex))).toMatch(
      new RegExp(
        `^${refused}; new feerate ${feerate(980, lower)} BTC/kvB <= old feerate ${feerate(1_000, first)} BTC/kvB$`,
      ),
    )
    const slightly = await pay(own, 1_050n)
    expect(await verdict(submit(slightly.hex))).toMatch(
      new RegExp(`^${refused}, not enough additional fees to relay; 0.0000005 < ${shortly(slightly.vsize)}$`),
    )
    const wider = spend([own, other], [{ address: await fresh(), sats: 197_000n }])
    expect(await verdict(submit(wider.hex))).toBe('taken')
    expect(await mempool()).toEqual([wider.txid])
    await devnet.mine('BTC', 1)
    expect(await verdict(submit(first.hex))).toBe('-25 bad-txns-inputs-missingorspent')
  })

  test('with a payment that is replaced goes all that spends it, and its fees count', async () => {
    const key = Uint8Array.from(randomBytes(32))
    const own = await coin()
    const { address = '' } = paymentTo('segwit', key)
    const parent = spend([own], [{ address, sats: 99_000n }])
    await submit(parent.hex)
    const child = await pay(await coinOf(devnet.bitcoin.rpc, parent.txid, 'segwit', key), 20_000n)
    await submit(child.hex)
    const family = await rpc<Record<string, number>>('getmempoolentry', [parent.txid])
    expect(family).toMatchObject({ descendantcount: 2, ancestorcount: 1, spentby: [child.txid] })
    expect(await verdict(submit((await pay(own, 15_000n)).hex))).toMatch(
      /^-26 insufficient fee, rejecting replacement [0-9a-f]{64}, less fees than conflicting txs; 0\.00015 < 0\.00021$/,
    )
    const { hex, txid } = await pay(own, 30_000n)
    await submit(hex)
    expect(await mempool()).toEqual([txid])
    await devnet.mine('BTC', 1)
  })

  test('no more than twenty-five wait in a row', async () => {
    const key = Uint8Array.from(randomBytes(32))
    const { address = '' } = paymentTo('segwit', key)
    let last = await coin(1_000_000n)
    for (let count = 1; count <= 25; count++) {
      const { hex, txid } = spend([last], [{ address, sats: last.sats - 1_000n }])
      expect(await verdict(submit(hex)), `the ${count}th`).toBe('taken')
      last = await coinOf(devnet.bitcoin.rpc, txid, 'segwit', key)
    }
    const { hex } = await pay(last, 1_000n)
    expect(await verdict(submit(hex))).toMatch(/^-26 too-long-mempool-chain, too many unconfirmed ancestors/)
    await devnet.reorg('BTC', 1)
    expect(await mempool(), 'what paid the first of them waits again, so the last must go').toHaveLength(25)
    await devnet.mine('BTC', 1)
    expect(await mempool()).toEqual([])
  })

  test('a block is told in bytes, and in more and more words', async () => {
    const own = await coin()
    const { hex, txid } = await pay(own, 1_234n)
    await submit(hex)
    await devnet.mine('BTC', 1)
    const hash = await rpc<string>('getbestblockhash')
    const raw = Buffer.from(await rpc<string>('getblock', [hash, 0]), 'hex')
    expect(sha256d(raw.subarray(0, 80))).toBe(hash)
    expect(raw.toString('hex')).toContain(hex)
    const told = await rpc<{ tx: string[]; size: number; nTx: number; merkleroot: string }>('getblock', [
      hash,
    ])
    expect(told).toMatchObject({ nTx: 2, size: raw.length, confirmations: 1 })
    expect(told.tx[1]).toBe(txid)
    const [first = '', second = ''] = told.tx.map((id) => Buffer.from(id, 'hex').reverse().toString('hex'))
    expect(sha256d(Buffer.from(first + second, 'hex'))).toBe(told.merkleroot)
    const worded = await rpc<{ tx: { fee?: number; hex: string }[] }>('getblock', [hash, 2])
    expect(worded.tx.map(({ fee }) => fee)).toEqual([undefined, 0.00001234])
    const spent = await rpc<{ fee: number; vin: unknown[] }>('getrawtransaction', [txid, 2])
    const prevout = { generated: false, value: 0.001, scriptPubKey: { type: 'witness_v0_keyhash' } }
    expect(spent).toMatchObject({ fee: 0.00001234, confirmations: 1, blockhash: hash, vin: [{ prevout }] })
  })

  test('the index remembers a block that lost, until what it held is mined again', async () => {
    const own = await coin()
    const { hex, txid } = await pay(own, 1_000n)
    await submit(hex)
    await devnet.mine('BTC', 1)
    const lost = await rpc<string>('getbestblockhash')
    await devnet.reorg('BTC', 1)
    const { hex: rival } = await pay(own, 5_000n)
    await submit(rival)
    await devnet.mine('BTC', 1)
    const found = await rpc<object>('getrawtransaction', [txid, 1])
    expect(found).toMatchObject({ blockhash: lost, confirmations: 0 })
    expect(found).not.toHaveProperty('blocktime')
    expect(await rpc('getblockheader', [lost])).toMatchObject({ confirmations: -1 })
    expect(await rpc<string>('getblock', [lost, 0])).toContain(hex)
    expect(await verdict(submit(hex))).toBe('-25 bad-txns-inputs-missingorspent')
  })

  test('a miner may take what is not relayed; what it spends no longer waits', async () => {
    const own = await coin()
    const waiting = await pay(own, 1_000n)
    await submit(waiting.hex)
    const { hex, txid } = spend([own], [{ script: Uint8Array.from([0x61, 0x51]), sats: own.sats }])
    const { hash } = await rpc<{ hash: string }>('generateblock', [await fresh(), [hex]])
    expect((await rpc<{ tx: string[] }>('getblock', [hash])).tx[1]).toBe(txid)
    expect(await mempool()).toEqual([])
    expect(await verdict(rpc('generateblock', [await fresh(), [waiting.hex]]))).toMatch(
      /^-25 TestBlockValidity failed: bad-txns-inputs-missingorspent/,
    )
    const bad = tamper((await pay(await coin(), 1_000n)).hex)
    expect(await verdict(rpc('generateblock', [await fresh(), [bad]]))).toMatch(
      /^-25 TestBlockValidity failed: block-script-verify-flag-failed|^-25 TestBlockValidity failed: mandatory-script/,
    )
  })

  test('a coin that something waiting spends is there and is not', async () => {
    const own = await coin()
    const at = [own.txid, own.index]
    const mined = { confirmations: 1, value: 0.001, coinbase: false }
    expect(await rpc('gettxout', at)).toMatchObject(mined)
    const { hex, txid } = await pay(own, 1_000n)
    expect(await rpc('testmempoolaccept', [[hex]])).toMatchObject([{ txid, allowed: true }])
    await submit(hex)
    expect(await rpc('gettxout', at)).toBeNull()
    expect(await rpc('gettxout', [...at, false])).toMatchObject(mined)
    expect(await rpc('gettxout', [txid, 0])).toMatchObject({ confirmations: 0, value: 0.00099 })
    await devnet.mine('BTC', 1)
  })

  test('the least fees are told', async () => {
    const least = { mempoolminfee: 0.00001, minrelaytxfee: 0.00001 }
    expect(await rpc('getmempoolinfo')).toMatchObject({ loaded: true, size: 0, bytes: 0, ...least })
  })

  test('calls come alone and in batches, from who has the password, and errors have their codes', async () => {
    const one = (method: string, params: unknown[] = [], more: object = {}) => ({
      id: 1,
      method,
      params,
      ...more,
    })
    const genesis = '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206'
    const range = { code: -8, message: 'Block height out of range' }
    const unknown = { code: -32601, message: 'Method not found' }
    for (const [request, status, answer] of [
      [one('getblockhash', [0]), 200, { result: genesis, error: null, id: 1 }],
      [one('getblockhash', [10 ** 6]), 500, { result: null, error: range, id: 1 }],
      [one('getblockhash', [10 ** 6], { jsonrpc: '2.0' }), 200, { jsonrpc: '2.0', error: range, id: 1 }],
      [one('nothing'), 404, { result: null, error: unknown, id: 1 }],
      [
        [one('getblockhash', [0]), one('nothing')],
        200,
        [
          { result: genesis, error: null, id: 1 },
          { result: null, error: unknown, id: 1 },
        ],
      ],
      [{ id: 1 }, 400, { result: null, error: { code: -32600, message: 'Missing method' }, id: 1 }],
    ] as const) {
      const response = await post(JSON.stringify(request))
      expect([response.status, JSON.parse(response.text)]).toEqual([status, answer])
    }
    expect(await post('hello')).toMatchObject({ status: 500, text: expect.stringContaining('Parse error') })
    expect(await post('{}', 'Basic eDp5')).toEqual({ status: 401, text: '' })
    expect((await post(JSON.stringify(one('getblockcount')), undefined, '/other')).status).toBe(404)
    const tiny = await paidOwner(devnet, 'segwit', 1_000n)
    const { text } = await post(JSON.stringify(one('gettxout', [tiny.txid, tiny.index])))
    expect(text, 'no 1e-5').toContain('"value":0.00001000,')
  })

  async function post(body: string, authorization?: string, path = '/') {
    const { origin, username, password } = new URL(devnet.networks.BTC?.rpcUrl ?? '')
    const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const headers = { authorization: authorization ?? basic }
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
})

function sha256d(bytes: Uint8Array): string {
  const once = createHash('sha256').update(bytes).digest()
  return createHash('sha256').update(once).digest().reverse().toString('hex')
}
