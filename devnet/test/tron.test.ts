import { TronWeb, type Types, utils } from 'tronweb'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { compileContracts } from '../src/evm/compile_contracts.ts'
import { type Devnet, startDevnet } from '../src/index.ts'
import { usedBandwidth } from '../src/tron/fees.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: the simulated TRON answers the field's own client library as a full node does, down to the codes and the fees.
 * How: the published client over HTTP, and plain requests beside it; blocks are made when a test says so.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet

const start = () => startDevnet({ dataDir: folder.path, networks: ['TRX'], mining: 'manual' })

beforeAll(async () => {
  devnet = await start()
})

afterEach(() => devnet.trouble('TRX', null))

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

const info = () => {
  if (devnet.networks.TRX === undefined) throw new Error('TRX was started')
  return devnet.networks.TRX
}

const mine = (blocks = 1) => devnet.mine('TRX', blocks)
const trx = (address: string) => devnet.balance('TRX', 'TRX', address)
const usdt = (address: string) => devnet.balance('TRX', 'USDT', address)
const TRX = 1_000_000n

type Json = Record<string, unknown>
async function ask<T = Json>(path: string, body: object = {}): Promise<T> {
  const response = await fetch(`${info().fullNodeUrl}/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  return (await response.json()) as T
}

type Info = {
  id: string
  fee?: number
  result?: string
  contractResult: string[]
  receipt: Record<string, unknown>
  log?: { address: string; topics: string[]; data: string }[]
  internal_transactions?: { transferTo_address: string; rejected?: boolean; callValueInfo: object[] }[]
}
const infoOf = (id: string) => ask<Info>('wallet/gettransactioninfobyid', { value: id })

/** Somebody with money and a client of his own. */
async function funded({ sun = 1_000n * TRX, units = 0n } = {}) {
  const { privateKey, address } = utils.accounts.generateAccount()
  if (sun > 0n) await devnet.send('TRX', 'TRX', address.base58, sun)
  if (units > 0n) await devnet.send('TRX', 'USDT', address.base58, units)
  await mine()
  const client = new TronWeb({ fullHost: info().fullNodeUrl, privateKey })
  return { client, address: address.base58, hex: address.hex.toLowerCase() }
}
type Party = Awaited<ReturnType<typeof funded>>

type Unsigned = Types.Transaction
type Signed = Types.SignedTransaction

/** Broadcasts, makes a block, and gives what the block says. */
async function enter(tx: Signed) {
  const answer = await broadcast(tx)
  expect(answer, said(answer)).toEqual({ result: true, txid: tx.txID })
  await mine()
  return infoOf(tx.txID)
}

type Answer = { result?: boolean; code?: string; txid?: string; message?: string }
const broadcast = (tx: object) => ask<Answer>('wallet/broadcasttransaction', tx)
const said = ({ message = '' }: Answer) => Buffer.from(message, 'hex').toString()

async function transfer({ client, address }: Party, to: string, sun: bigint, change = (_tx: Unsigned) => {}) {
  const tx = await client.transactionBuilder.sendTrx(to, Number(sun), address)
  return sign(client, tx, change)
}

/** The bytes are written anew, so that whatever was changed is what is signed. */
async function sign(client: TronWeb, tx: Unsigned, change = (_tx: Unsigned) => {}): Promise<Signed> {
  change(tx)
  const pb = utils.transaction.txJsonToPb(tx as never)
  const txID = utils.transaction.txPbToTxID(pb).replace(/^0x/, '')
  const raw_data_hex = utils.transaction.txPbToRawDataHex(pb).toLowerCase()
  return (await client.trx.sign({ ...tx, txID, raw_data_hex } as Unsigned)) as Signed
}

async function call(
  { client, address }: Party,
  contract: string,
  selector: string,
  parameters: { type: string; value: unknown }[],
  { feeLimit = 100n * TRX, callValue = 0n } = {},
) {
  const options = { feeLimit: Number(feeLimit), callValue: Number(callValue), txLocal: true }
  const built = await client.transactionBuilder.triggerSmartContract(
    contract,
    selector,
    options,
    parameters,
    address,
  )
  return sign(client, built.transaction)
}

const TRANSFER = 'transfer(address,uint256)'
const toWhom = (to: string, units: bigint) => [
  { type: 'address', value: to },
  { type: 'uint256', value: String(units) },
]

describe('what a client does', () => {
  test('a transfer is built, signed, broadcast, and found with its fee; a new account costs more', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('TRX')
    const first = await enter(await transfer(sender, to, 5n * TRX))
    expect(first).toMatchObject({ fee: 1_100_000, receipt: { net_fee: 100_000 }, contractResult: [''] })
    expect([await trx(to), await trx(sender.address)]).toEqual([5n * TRX, 1_000n * TRX - 6_100_000n])
    const second = await enter(await transfer(sender, to, 1n))
    expect(second.fee, 'inside the free bandwidth').toBeUndefined()
    expect(second.receipt).toEqual({ net_usage: expect.any(Number) })
    const found = await sender.client.trx.getTransaction(second.id)
    expect(found).toMatchObject({ txID: second.id, ret: [{ contractRet: 'SUCCESS' }] })
  })

  test('the free bandwidth of a day ends, and then each byte costs', async () => {
    const sender = await funded()
    const to = (await funded()).address
    const fees: number[] = []
    for (let sent = 0; sent < 4; sent++)
      fees.push((await enter(await transfer(sender, to, TRX + BigInt(sent)))).fee ?? 0)
    const bytes = 267
    expect(fees).toEqual([0, 0, bytes * 1_000, bytes * 1_000])
    const resources = await sender.client.trx.getAccountResources(sender.address)
    expect(resources).toMatchObject({ freeNetLimit: 600, freeNetUsed: expect.any(Number) })
  })

  test('used bandwidth comes back evenly within a day', () => {
    const bandwidth = { used: 600n, atMs: 1_000 }
    const hours = (count: number) => usedBandwidth(bandwidth, 1_000 + count * 3_600_000)
    expect([0, 6, 12, 24, 48].map(hours)).toEqual([600n, 450n, 300n, 0n, 0n])
  })

  test('a note costs a TRX', async () => {
    const [sender, to] = [await funded(), await funded()]
    const note = ({ raw_data }: Unsigned) => void Object.assign(raw_data, { data: 'c0ffee' })
    expect(await enter(await transfer(sender, to.address, 5n, note))).toMatchObject({ fee: 1_000_000 })
    expect(await trx(sender.address)).toBe(999n * TRX - 5n)
  })

  test('USDT moves for the energy that was estimated, and its contract says so', async () => {
    const sender = await funded({ units: 50_000_000n })
    const to = await devnet.freshAddress('TRX')
    const estimated = await sender.client.transactionBuilder.estimateEnergy(
      info().tokens.USDT.address,
      TRANSFER,
      {},
      toWhom(to, 7_000_000n),
      sender.address,
    )
    const entered = await enter(
      await call(sender, info().tokens.USDT.address, TRANSFER, toWhom(to, 7_000_000n)),
    )
    expect(entered.receipt).toMatchObject({
      result: 'SUCCESS',
      energy_usage_total: estimated.energy_required,
      energy_fee: estimated.energy_required * 100,
    })
    expect([await usdt(to), await usdt(sender.address)]).toEqual([7_000_000n, 43_000_000n])
    expect(entered.contractResult, 'it answers false').toEqual(['0'.repeat(64)])
    const token = utils.address.toHex(info().tokens.USDT.address).slice(2).toLowerCase()
    expect(entered.log).toMatchObject([{ address: token, data: (7_000_000).toString(16).padStart(64, '0') }])
    const again = await enter(await call(sender, info().tokens.USDT.address, TRANSFER, toWhom(to, 1n)))
    expect(again.receipt.energy_usage_total, 'a new holder is a new entry').toBe(
      estimated.energy_required - 15_000,
    )
  })

  test('the contract is asked for its own words', async () => {
    const { client, address } = await funded({ units: 12n })
    const token = await client.contract().at(info().tokens.USDT.address)
    const read = (name: string, ...args: unknown[]) => token[name]?.(...args).call()
    expect(await Promise.all(['name', 'symbol', 'decimals'].map((name) => read(name)))).toEqual([
      'Tether USD',
      'USDT',
      6n,
    ])
    expect(await read('balanceOf', address)).toBe(12n)
  })

  test('somebody deploys a contract of his own and calls it', async () => {
    const owner = await funded()
    const { address } = await deploy(owner, 'TestToken', ['Any', 'ANY', 2, owner.address])
    expect(await ask('wallet/getcontract', { value: address, visible: true })).toMatchObject({
      contract_address: address,
      origin_address: owner.address,
      name: 'TestToken',
    })
    await enter(await call(owner, address, 'mint(address,uint256)', toWhom(owner.address, 9n)))
    const { abi } = compileContracts().TestToken
    expect(
      await owner.client
        .contract(abi as never, address)
        .balanceOf?.(owner.address)
        .call(),
    ).toBe(9n)
  })

  test('a contract is paid when it is deployed', async () => {
    const owner = await funded()
    const built = await owner.client.transactionBuilder.createSmartContract(
      {
        abi: [{ type: 'constructor', stateMutability: 'payable', inputs: [] }] as never,
        bytecode: '60016000f3',
        callValue: 7,
        feeLimit: 1_000_000_000,
        name: 'Empty',
      },
      owner.address,
    )
    const { fee = 0 } = await enter(await sign(owner.client, built as Unsigned))
    const { contract_address } = built as { contract_address: string }
    expect([await trx(contract_address), await trx(owner.address)]).toEqual([
      7n,
      1_000n * TRX - 7n - BigInt(fee),
    ])
    expect(await ask('wallet/getaccount', { address: contract_address })).toMatchObject({ type: 'Contract' })
  })

  test('a contract that there is not enough energy to keep is not there', async () => {
    const owner = await funded()
    const { bytecode, abi } = compileContracts().LookalikeToken
    const built = await owner.client.transactionBuilder.createSmartContract(
      { abi: abi as never, bytecode: bytecode.slice(2), feeLimit: 20_000_000, name: 'Dear' },
      owner.address,
    )
    const entered = await enter(await sign(owner.client, built as Unsigned))
    expect(entered).toMatchObject({ fee: expect.any(Number), receipt: { result: 'OUT_OF_ENERGY' } })
    expect(
      await ask('wallet/getcontract', { value: (built as { contract_address: string }).contract_address }),
    ).toEqual({})
  })

  test('what a node writes for a client is what the client writes', async () => {
    const [sender, to] = [await funded({ units: 5n }), await funded()]
    const shown = await ask<Unsigned>('wallet/createtransaction', {
      owner_address: sender.address,
      to_address: to.address,
      amount: 5,
      visible: true,
    })
    expect(shown).toMatchObject({
      visible: true,
      raw_data: { contract: [{ parameter: { value: { owner_address: sender.address } } }] },
    })
    await enter((await sender.client.trx.sign(shown)) as Signed)
    const built = await ask<Unsigned>('wallet/createtransaction', {
      owner_address: sender.hex,
      to_address: to.hex,
      amount: 6,
    })
    await enter((await sender.client.trx.sign(built)) as Signed)
    const { transaction } = await ask<{ transaction: Unsigned }>('wallet/triggersmartcontract', {
      owner_address: sender.hex,
      contract_address: utils.address.toHex(info().tokens.USDT.address),
      function_selector: TRANSFER,
      parameter: `${to.hex.slice(2).padStart(64, '0')}${'5'.padStart(64, '0')}`,
      fee_limit: 100_000_000,
    })
    await enter((await sender.client.trx.sign(transaction)) as Signed)
    expect([await trx(to.address), await usdt(to.address)]).toEqual([1_000n * TRX + 11n, 5n])
    const poor = { owner_address: to.hex, to_address: sender.hex, amount: 10 ** 15 }
    expect((await ask('wallet/createtransaction', poor)).Error).toContain('balance is not sufficient')
  })

  test('a transaction as bytes, and an account made without money', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('TRX')
    const account = (await sender.client.transactionBuilder.createAccount(to, sender.address)) as Unsigned
    expect((await enter(await sign(sender.client, account))).fee).toBe(1_100_000)
    const tx = await transfer(sender, to, 3n)
    const pb = utils.transaction.txJsonToPb(tx as never)
    for (const each of tx.signature) pb.addSignature(Uint8Array.from(Buffer.from(each, 'hex')))
    const transaction = Buffer.from(pb.serializeBinary()).toString('hex')
    const answer = await ask('wallet/broadcasthex', { transaction })
    expect(answer).toMatchObject({ result: true, txid: tx.txID, code: 'SUCCESS' })
    await mine()
    expect(await trx(to)).toBe(3n)
  })

  test('addresses are told good from bad, in both spellings', async () => {
    const good = await devnet.freshAddress('TRX')
    const verdict = async (address: string) =>
      (await ask<{ result: boolean }>('wallet/validateaddress', { address })).result
    expect(await verdict(good)).toBe(true)
    expect(await verdict(utils.address.toHex(good))).toBe(true)
    expect(await verdict(`${good.slice(0, -1)}${good.endsWith('a') ? 'b' : 'a'}`)).toBe(false)
  })
})

async function deploy(
  owner: Party,
  name: keyof ReturnType<typeof compileContracts>,
  parameters: unknown[] = [],
) {
  const { abi, bytecode } = compileContracts()[name]
  const built = await owner.client.transactionBuilder.createSmartContract(
    { abi: abi as never, bytecode: bytecode.slice(2), feeLimit: 1_000_000_000, name, parameters },
    owner.address,
  )
  const entered = await enter(await sign(owner.client, built as Unsigned))
  expect(entered.receipt.result).toBe('SUCCESS')
  return { address: utils.address.fromHex((built as { contract_address: string }).contract_address), entered }
}

describe('the chain', () => {
  type BlockJson = {
    blockID: string
    block_header: {
      raw_data: { number?: number; parentHash: string; timestamp: number; witness_address: string }
      witness_signature: string
    }
    transactions?: object[]
  }

  test('each block names the one before it, three seconds or more later, and its own number', async () => {
    await mine(4)
    const { height } = await head()
    const { block: blocks } = await ask<{ block: BlockJson[] }>('wallet/getblockbylimitnext', {
      startNum: height - 3,
      endNum: height + 1,
    })
    expect(blocks).toHaveLength(4)
    for (const [index, block] of blocks.entries()) {
      const { raw_data } = block.block_header
      expect(Number.parseInt(block.blockID.slice(0, 16), 16)).toBe(raw_data.number)
      const before = blocks[index - 1]
      if (before === undefined) continue
      expect(raw_data.parentHash).toBe(before.blockID)
      expect(raw_data.timestamp - before.block_header.raw_data.timestamp).toBeGreaterThanOrEqual(3_000)
    }
    expect(await ask('wallet/getblockbynum', { num: height + 1 })).toEqual({})
    expect((await ask<BlockJson>('wallet/getblockbynum', { num: 0 })).blockID).toBe(info().genesisBlockId)
  })

  test('a transaction is solid when 19 blocks are built on its own, and not before', async () => {
    const to = await devnet.freshAddress('TRX')
    const { txHash } = await devnet.send('TRX', 'USDT', to, 5n)
    expect(await ask('wallet/gettransactionbyid', { value: txHash }), 'in no block').toEqual({})
    await mine(19)
    const solid = () => ask('walletsolidity/gettransactioninfobyid', { value: txHash })
    expect(await solid()).toEqual({})
    await mine()
    const { height } = await head()
    expect(await solid()).toEqual(await infoOf(txHash))
    expect(await ask('walletsolidity/gettransactioninfobyblocknum', { num: height - 19 })).toEqual([
      await infoOf(txHash),
    ])
    expect(await ask('walletsolidity/gettransactioninfobyblocknum', { num: height - 18 })).toEqual([])
    expect(await ask('walletsolidity/getnowblock')).toMatchObject({
      block_header: { raw_data: { number: height - 19 } },
    })
  })

  test('a full node counts what waits in it, and what is solid does not move', async () => {
    const to = await devnet.freshAddress('TRX')
    await devnet.send('TRX', 'USDT', to, 5n)
    await devnet.send('TRX', 'TRX', to, 7n)
    const hex = utils.address.toHex(to).toLowerCase()
    const held = async (api: string) => {
      const { constant_result } = await ask<{ constant_result: string[] }>(`${api}/triggerconstantcontract`, {
        owner_address: hex,
        contract_address: utils.address.toHex(info().tokens.USDT.address),
        function_selector: 'balanceOf(address)',
        parameter: hex.slice(2).padStart(64, '0'),
      })
      const { balance } = await ask(`${api}/getaccount`, { address: hex })
      return [Number(`0x${constant_result[0]}`), balance]
    }
    expect([await held('wallet'), await held('walletsolidity')]).toEqual([
      [5, 7],
      [0, undefined],
    ])
    expect([await usdt(to), await trx(to)], 'the blocks say nothing yet').toEqual([0n, 0n])
    await mine(20)
    expect(await held('walletsolidity')).toEqual([5, 7])
  })

  test('a reorganisation undoes blocks, and what was in them comes again if it refers to an older block', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('TRX')
    await mine(2)
    const young = await transfer(sender, (await funded()).address, 5n)
    const { txHash: old } = await devnet.send('TRX', 'TRX', to, 5n)
    await broadcast(young)
    await mine()
    const before = await head()
    await devnet.reorg('TRX', 3)
    const after = await head()
    expect(after.height).toBe(before.height + 1)
    expect(await ask('wallet/getblockbyid', { value: before.id })).toEqual({})
    expect([await infoOf(old), await trx(to)]).toEqual([{}, 0n])
    await mine()
    expect([(await infoOf(old)).id, await trx(to)]).toEqual([old, 5n])
    expect(await infoOf(young.txID), 'it referred to a block that is gone').toEqual({})
    expect((await broadcast(young)).code).toBe('TAPOS_ERROR')
  })

  test('what is solid is not undone', async () => {
    await mine(19)
    const { id } = await head()
    await mine(19)
    await devnet.reorg('TRX', 19)
    expect(await ask('wallet/getblockbyid', { value: id })).toMatchObject({ blockID: id })
    await expect(devnet.reorg('TRX', 20)).rejects.toThrow('solid')
  })

  async function head() {
    const { blockID: id, block_header } = await ask<BlockJson>('wallet/getnowblock')
    return { id, height: block_header.raw_data.number ?? 0 }
  }
})

describe('what is refused and costs nothing', () => {
  test.each<[code: string, words: string, make: (sender: Party, to: string) => Promise<object>]>([
    [
      'SIGERROR',
      'not contained of permission',
      async (sender, to) => {
        const stranger = await funded()
        const tx = await sender.client.transactionBuilder.sendTrx(to, 1, sender.address)
        return stranger.client.trx.multiSign(tx as never)
      },
    ],
    ['SIGERROR', 'miss sig', async (sender, to) => ({ ...(await transfer(sender, to, 1n)), signature: [] })],
    [
      'SIGERROR',
      'not what raw_data_hex says',
      async (sender, to) => {
        const tx = await transfer(sender, to, 1n)
        const contract = tx.raw_data.contract[0]
        Object.assign(contract?.parameter.value ?? {}, { amount: 2 })
        return tx
      },
    ],
    [
      'SIGERROR',
      "permission isn't exit",
      (sender, to) =>
        transfer(sender, to, 1n, ({ raw_data }) =>
          Object.assign(raw_data.contract[0] ?? {}, { Permission_id: 3 }),
        ),
    ],
    [
      'TAPOS_ERROR',
      'different block hash',
      (sender, to) =>
        transfer(sender, to, 1n, ({ raw_data }) =>
          Object.assign(raw_data, { ref_block_hash: 'ab'.repeat(8) }),
        ),
    ],
    [
      'TRANSACTION_EXPIRATION_ERROR',
      'headBlockTime',
      (sender, to) =>
        transfer(sender, to, 1n, ({ raw_data }) =>
          Object.assign(raw_data, { expiration: raw_data.timestamp - 1 }),
        ),
    ],
    [
      'TRANSACTION_EXPIRATION_ERROR',
      'headBlockTime',
      (sender, to) =>
        transfer(sender, to, 1n, ({ raw_data }) =>
          Object.assign(raw_data, { expiration: raw_data.expiration + 86_400_000 }),
        ),
    ],
    ['CONTRACT_VALIDATE_ERROR', 'not sufficient', (sender, to) => transfer(sender, to, 1_000n * TRX)],
    [
      'CONTRACT_VALIDATE_ERROR',
      'to a smartContract',
      (sender) => transfer(sender, info().tokens.USDT.address, 1n),
    ],
    [
      'CONTRACT_VALIDATE_ERROR',
      'not a valid smart contract',
      (sender, to) => call(sender, to, TRANSFER, toWhom(to, 1n)),
    ],
    [
      'BANDWITH_ERROR',
      'resource insufficient',
      async (_sender, to) => transfer(await funded({ sun: 50_000n }), to, 1n),
    ],
  ])('%s: %s', async (code, words, make) => {
    const sender = await funded()
    const answer = await broadcast(await make(sender, await devnet.freshAddress('TRX')))
    expect(answer.code).toBe(code)
    expect(said(answer)).toContain(words)
    await mine()
    expect([answer.result, await trx(sender.address)]).toEqual([undefined, 1_000n * TRX])
  })

  test('bytes that are no transaction, and kinds that are not run here', async () => {
    for (const transaction of ['ff', '0a05', 'zz', ''])
      expect(await ask('wallet/broadcasthex', { transaction })).not.toHaveProperty('result')
    const { client, address } = await funded()
    const built = await client.transactionBuilder.freezeBalanceV2(1_000_000, 'ENERGY', address)
    const answer = await broadcast(await sign(client, built as Unsigned))
    expect([answer.code, said(answer)]).toEqual(['OTHER_ERROR', 'contract type 54 is not run here'])
    expect((await fetch(`${info().fullNodeUrl}/wallet/nothing`)).status).toBe(404)
    expect((await ask('wallet/getaccount', { address: 'nobody' })).Error).toContain('invalid address')
  })

  test('the same bytes twice are a duplicate, while they wait and for ever after, and are paid once', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('TRX')]
    const tx = await transfer(sender, to, 5n)
    expect([(await broadcast(tx)).result, (await broadcast(tx)).code]).toEqual([
      true,
      'DUP_TRANSACTION_ERROR',
    ])
    await mine()
    expect((await broadcast(tx)).code).toBe('DUP_TRANSACTION_ERROR')
    await mine()
    expect(await trx(to)).toBe(5n)
  })

  test('the active permission may sign as well', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('TRX')]
    const permit = ({ raw_data }: Unsigned) =>
      void Object.assign(raw_data.contract[0] ?? {}, { Permission_id: 2 })
    await enter(await transfer(sender, to, 5n, permit))
    expect(await trx(to)).toBe(5n)
  })

  test('a transaction that waited past its expiration is thrown away', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('TRX')]
    const tx = await transfer(sender, to, 5n)
    devnet.trouble('TRX', { submits: ['drop'] })
    expect((await broadcast(tx)).result).toBe(true)
    await mine(21)
    expect((await broadcast(tx)).code).toBe('TRANSACTION_EXPIRATION_ERROR')
    expect([await infoOf(tx.txID), await trx(to)]).toEqual([{}, 0n])
  })
})

describe('what fails in its block and costs energy', () => {
  test.each<[contractRet: string, feeLimit: bigint, contract: () => string, units: bigint]>([
    ['REVERT', 100n * TRX, () => info().tokens.USDT.address, 51n],
    ['OUT_OF_ENERGY', 1n * TRX, () => info().tokens.USDT.address, 1n],
    ['REVERT', 100n * TRX, () => info().contracts.RevertingToken.address, 1n],
    ['OUT_OF_ENERGY', 10n * TRX, () => info().contracts.BurningToken.address, 1n],
    ['OUT_OF_TIME', 301n * TRX, () => info().contracts.BurningToken.address, 1n],
  ])('%s with a fee limit of %d sun', async (contractRet, feeLimit, contract, units) => {
    const sender = await funded({ units: 50n })
    const to = await devnet.freshAddress('TRX')
    const tx = await call(sender, contract(), TRANSFER, toWhom(to, units), { feeLimit })
    const entered = await enter(tx)
    expect(entered).toMatchObject({ result: 'FAILED', receipt: { result: contractRet } })
    expect(entered.log).toBeUndefined()
    const burnt = BigInt(entered.fee ?? 0)
    if (contractRet === 'REVERT') expect(burnt).toBeLessThan(feeLimit)
    else expect(burnt).toBe(feeLimit)
    expect(await trx(sender.address)).toBe(1_000n * TRX - burnt)
    expect([await usdt(to), await usdt(sender.address)]).toEqual([0n, 50n])
    expect(await ask('wallet/gettransactionbyid', { value: tx.txID })).toMatchObject({
      ret: [{ contractRet }],
    })
  })

  test('a call that would fail is told so beforehand', async () => {
    const sender = await funded()
    const asked = {
      owner_address: sender.hex,
      contract_address: utils.address.toHex(info().tokens.USDT.address),
      function_selector: TRANSFER,
      parameter: `${sender.hex.slice(2).padStart(64, '0')}${'1'.padStart(64, '0')}`,
    }
    const estimate = await ask<{ result: Answer }>('wallet/estimateenergy', asked)
    expect([estimate.result.code, said(estimate.result)]).toEqual([
      'CONTRACT_EXE_ERROR',
      'REVERT opcode executed',
    ])
    const constant = await ask('wallet/triggerconstantcontract', asked)
    expect(constant).toMatchObject({ transaction: { ret: [{ ret: 'FAILED' }] } })
  })
})

describe('what looks like money and is none', () => {
  test.each(['FalseReturnToken', 'SpoofToken'] as const)(
    '%s says Transfer and moves nothing',
    async (name) => {
      const sender = await funded()
      const to = await devnet.freshAddress('TRX')
      const entered = await enter(
        await call(sender, info().contracts[name].address, TRANSFER, toWhom(to, 5n)),
      )
      expect(entered).toMatchObject({
        receipt: { result: 'SUCCESS' },
        contractResult: [String(name === 'SpoofToken' ? 1 : 0).padStart(64, '0')],
      })
      expect(entered.log).toHaveLength(1)
      expect(await usdt(to)).toBe(0n)
    },
  )

  test('another contract of the same name moves its own units', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('TRX')
    const { address } = info().contracts.LookalikeToken
    await enter(await call(sender, address, 'mint(address,uint256)', toWhom(sender.address, 100n)))
    const entered = await enter(await call(sender, address, TRANSFER, toWhom(to, 5n)))
    expect(entered.log).toMatchObject([{ address: utils.address.toHex(address).slice(2).toLowerCase() }])
    const token = await sender.client.contract().at(address)
    expect([await token.symbol?.().call(), await token.balanceOf?.(to).call(), await usdt(to)]).toEqual([
      'USDT',
      5n,
      0n,
    ])
  })

  test('a TRC-10 token of the same name', async () => {
    const to = await devnet.freshAddress('TRX')
    const sender = await holderOfTrc10()
    const { client, address } = sender
    const built = await client.transactionBuilder.sendToken(to, 5, info().falseTrc10, address)
    const entered = await enter(await sign(client, built as Unsigned))
    expect(entered.receipt.result).toBeUndefined()
    expect(await ask('wallet/getaccount', { address: to, visible: true })).toMatchObject({
      address: to,
      assetV2: [{ key: info().falseTrc10, value: 5 }],
    })
    expect([await usdt(to), await trx(to)]).toEqual([0n, 0n])
    const asset = await ask<{ name: string }>('wallet/getassetissuebyid', { value: info().falseTrc10 })
    expect(Buffer.from(asset.name, 'hex').toString()).toBe('USDT')
  })

  test('TRX that a contract moves is told apart from what it undoes again', async () => {
    const sender = await funded()
    const to = await devnet.freshAddress('TRX')
    const { address } = info().contracts.Payer
    const pay = async (selector: string) =>
      enter(await call(sender, address, selector, [{ type: 'address', value: to }], { callValue: 5n }))
    const toHex = utils.address.toHex(to).toLowerCase()
    const paid = await pay('forward(address)')
    expect(paid.internal_transactions).toMatchObject([
      {
        transferTo_address: toHex,
        callValueInfo: [{ callValue: 5 }],
        note: Buffer.from('call').toString('hex'),
      },
    ])
    expect(paid.internal_transactions?.[0]?.rejected).toBeUndefined()
    expect(await trx(to)).toBe(5n)
    const undone = await pay('payAndRevertInside(address)')
    expect(undone.receipt.result).toBe('SUCCESS')
    expect(undone.internal_transactions?.map(({ rejected }) => rejected)).toEqual([true, true])
    expect(await trx(to)).toBe(5n)
  })

  test('a token that keeps a fee says more than it delivers', async () => {
    const faucet = faucetParty()
    const to = await devnet.freshAddress('TRX')
    const { address } = info().contracts.FeeOnTransferToken
    const entered = await enter(await call(faucet, address, TRANSFER, toWhom(to, 1_000n)))
    expect(Number(`0x${entered.log?.[0]?.data}`)).toBe(1_000)
    const token = await faucet.client.contract().at(address)
    expect(await token.balanceOf?.(to).call()).toBe(990n)
  })

  function faucetParty() {
    const client = new TronWeb({ fullHost: info().fullNodeUrl, privateKey: info().faucetKey })
    const { base58, hex } = client.defaultAddress
    return { client, address: String(base58), hex: String(hex) }
  }

  async function holderOfTrc10(): Promise<Party> {
    const holder = await funded()
    await mine()
    const { client, address } = faucetParty()
    const built = await client.transactionBuilder.sendToken(holder.address, 100, info().falseTrc10, address)
    await enter(await sign(client, built as Unsigned))
    return holder
  }
})

describe('what a test can ask for', () => {
  test('a transaction fails in its block, or is refused, with the code that was asked for', async () => {
    const sender = await funded({ units: 50n })
    const to = await devnet.freshAddress('TRX')
    devnet.trouble('TRX', { submits: [{ failWith: 'OUT_OF_ENERGY' }, { failWith: 'SERVER_BUSY' }] })
    const failing = await enter(await call(sender, info().tokens.USDT.address, TRANSFER, toWhom(to, 1n)))
    expect(failing).toMatchObject({ result: 'FAILED', receipt: { result: 'OUT_OF_ENERGY' } })
    const tx = await call(sender, info().tokens.USDT.address, TRANSFER, toWhom(to, 2n))
    expect((await broadcast(tx)).code).toBe('SERVER_BUSY')
    expect((await enter(tx)).receipt.result).toBe('SUCCESS')
    expect(await usdt(to)).toBe(2n)
  })

  test('a failed transfer of TRX moves nothing', async () => {
    const [sender, to] = [await funded(), await funded()]
    devnet.trouble('TRX', { submits: [{ failWith: 'REVERT' }] })
    const tx = await transfer(sender, to.address, 5n)
    await enter(tx)
    expect(await ask('wallet/gettransactionbyid', { value: tx.txID })).toMatchObject({
      ret: [{ contractRet: 'REVERT' }],
    })
    expect(await trx(to.address)).toBe(1_000n * TRX)
  })

  test('a lost reply leaves a transaction that was accepted, a lost request none', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('TRX')]
    devnet.trouble('TRX', { submits: ['lose request', 'lose reply'] })
    const tx = await transfer(sender, to, 5n)
    await expect(broadcast(tx)).rejects.toThrow()
    await mine()
    expect(await trx(to)).toBe(0n)
    await expect(broadcast(tx)).rejects.toThrow()
    await mine()
    expect([await trx(to), (await broadcast(tx)).code]).toEqual([5n, 'DUP_TRANSACTION_ERROR'])
  })

  test('a stranger has another first block, and refuses what was signed for ours', async () => {
    const [sender, to] = [await funded(), await devnet.freshAddress('TRX')]
    const tx = await transfer(sender, to, 5n)
    devnet.trouble('TRX', { isStranger: true })
    expect((await ask('wallet/getblockbynum', { num: 0 })).blockID).not.toBe(info().genesisBlockId)
    expect((await broadcast(tx)).code).toBe('TAPOS_ERROR')
    await devnet.send('TRX', 'TRX', to, 7n)
    await mine()
    expect(await trx(to), 'the faucet is at home').toBe(7n)
  })

  test('a node that falls behind tells older blocks, and what was in the newer ones is gone', async () => {
    const to = await devnet.freshAddress('TRX')
    const { txHash } = await devnet.send('TRX', 'USDT', to, 5n)
    await mine(3)
    devnet.trouble('TRX', { blocksBehind: 3 })
    expect(await infoOf(txHash)).toEqual({})
    devnet.trouble('TRX', { blocksBehind: 1_000_000 })
    await devnet.send('TRX', 'TRX', to, 7n)
    devnet.trouble('TRX', null)
    expect((await infoOf(txHash)).id).toBe(txHash)
    await mine()
    expect(await trx(to)).toBe(7n)
  })

  test('equal payments are two payments, and no payment is replaced', async () => {
    const to = await devnet.freshAddress('TRX')
    const { txHash } = await devnet.send('TRX', 'TRX', to, 5n)
    await devnet.send('TRX', 'TRX', to, 5n)
    await expect(devnet.replace(txHash)).rejects.toThrow('no network')
    await mine()
    expect(await trx(to)).toBe(10n)
    await expect(devnet.send('TRX', 'BTC', to, 1n)).rejects.toThrow('no BTC on TRX')
  })

  test('a second start goes on with the same chain, contracts and queue', async () => {
    const to = await devnet.freshAddress('TRX')
    const { txHash } = await devnet.send('TRX', 'USDT', to, 5n)
    await mine()
    const waiting = await devnet.send('TRX', 'USDT', to, 6n)
    const [before, networks] = [await infoOf(txHash), devnet.networks]
    await devnet.stop()
    devnet = await start()
    expect([await infoOf(txHash), devnet.networks]).toEqual([before, networks])
    await mine()
    expect([(await infoOf(waiting.txHash)).id, await usdt(to)]).toEqual([waiting.txHash, 11n])
  })
})
