import { abiJson } from './abi.ts'
import { parseAddress } from './addresses.ts'
import { blockJson, includedJson, infoJson, transactionJson } from './answers.ts'
import { builders } from './builders.ts'
import { type Answer, type Asked, addressIn, CommandError, type Params } from './command.ts'
import { transactionOf } from './decode_transaction.ts'
import { type Account, readAccount, readAsset, readContract, type TronState } from './entries.ts'
import { fees, usedBandwidth } from './fees.ts'
import { solidHeight, type TronBlock } from './rules.ts'
import { broadcastHex, broadcastTransaction } from './submit.ts'

type Command = (asked: Asked) => Answer | readonly Answer[]

/** Under /wallet and under /walletsolidity, where they answer from what is solid. */
export const readers: Readonly<Record<string, Command>> = {
  getnowblock: (asked) => tellBlock(asked, asked.view.head),
  getblock: readBlock,
  getblockbynum: (asked) => tellBlock(asked, asked.view.block(numberIn(asked.params, 'num'))),
  getblockbyid: (asked) => tellBlock(asked, asked.view.blockOf(String(asked.params.value))),
  getblockbylimitnext: (asked) =>
    tellBlocks(asked, numberIn(asked.params, 'startNum'), numberIn(asked.params, 'endNum')),
  getblockbylatestnum: (asked) => {
    const { height } = asked.view.head
    return tellBlocks(asked, Math.max(0, height + 1 - numberIn(asked.params, 'num')), height + 1)
  },
  gettransactionbyid: ({ view, params }) => {
    const found = view.find(String(params.value).toLowerCase())
    return found === undefined ? {} : includedJson(found)
  },
  gettransactioninfobyid: ({ view, params }) => {
    const found = view.find(String(params.value).toLowerCase())
    return found === undefined ? {} : infoJson(found, found.block)
  },
  gettransactioninfobyblocknum: ({ view, params }) => {
    const block = view.block(numberIn(params, 'num'))
    return block === undefined ? [] : block.included.map((each) => infoJson(each, block))
  },
  getaccount: (asked) => {
    const account = readAccount(stateOf(asked), addressIn(asked.params, 'address'))
    return account === undefined ? {} : accountJson(stateOf(asked), account)
  },
  gettransactioncountbyblocknum: ({ view, params }) => ({
    count: view.block(numberIn(params, 'num'))?.included.length ?? -1,
  }),
  getassetissuebyid: (asked) => {
    const asset = readAsset(stateOf(asked), String(asked.params.value))
    if (asset === undefined) return {}
    const hex = (text: string) => Buffer.from(text).toString('hex')
    return {
      owner_address: asset.owner,
      name: hex(asset.name),
      abbr: hex(asset.name),
      total_supply: Number(asset.supply),
      id: asset.id,
    }
  },
  triggerconstantcontract: builders.triggerConstantContract,
  estimateenergy: builders.estimateEnergy,
}

export const commands: Readonly<Record<string, Command>> = {
  ...readers,
  getaccountresource: (asked) => {
    const account = readAccount(stateOf(asked), addressIn(asked.params, 'address'))
    return account === undefined ? {} : resourceJson(asked, account)
  },
  getaccountnet: (asked) => {
    const account = readAccount(stateOf(asked), addressIn(asked.params, 'address'))
    return account === undefined ? {} : bandwidthJson(asked, account)
  },
  getchainparameters: () => ({
    chainParameter: Object.entries(fees).map(([key, value]) => ({ key, value: Number(value) })),
  }),
  getnodeinfo: ({ view }) => ({
    beginSyncNum: 0,
    block: `Num:${view.head.height},ID:${view.head.seal.hash}`,
    solidityBlock: `Num:${solidHeight(view.head)}`,
    currentConnectCount: 0,
    configNodeInfo: { codeVersion: '4.8.0', p2pVersion: '31344' },
  }),
  listnodes: () => ({}),
  validateaddress: ({ params }) => {
    const text = String(params.address ?? '')
    if (parseAddress(text) === undefined) return { result: false, message: 'Invalid address' }
    return { result: true, message: text.startsWith('T') ? 'Base58check format' : 'Hex string format' }
  },
  getcontract: (asked) => {
    const contract = readContract(stateOf(asked), addressIn(asked.params, 'value'))
    if (contract === undefined) return {}
    return {
      bytecode: contract.bytecode,
      consume_user_resource_percent: 100,
      name: contract.name,
      origin_address: contract.origin,
      abi: abiJson(contract.abi),
      contract_address: contract.address,
    }
  },
  gettransactionlistfrompending: ({ node }) => ({ txId: node.chain.waiting.map(({ id }) => id) }),
  gettransactionfrompending: ({ node, params }) => {
    const found = node.chain.waiting.find(({ id }) => id === String(params.value).toLowerCase())
    return found === undefined ? {} : transactionJson(transactionOf(found.rawHex, found.signatures))
  },
  createtransaction: builders.createTransaction,
  transferasset: builders.transferAsset,
  createaccount: builders.createAccount,
  triggersmartcontract: builders.triggerSmartContract,
  broadcasttransaction: broadcastTransaction,
  broadcasthex: broadcastHex,
}

function numberIn(params: Params, name: string): number {
  const value = Number(params[name] ?? 0)
  if (!Number.isSafeInteger(value) || value < 0)
    throw new CommandError('java.lang.NumberFormatException', `invalid ${name}: ${params[name]}`)
  return value
}

/** A full node already counts what waits in it; what is solid does not move. */
function stateOf({ node, view, isSolid }: Asked): TronState {
  return isSolid || view.head.height < node.chain.head.height ? view.state : node.chain.open()
}

function tellBlock({ node }: Asked, block: TronBlock | undefined, hasTransactions = true): Answer {
  return block === undefined ? {} : blockJson(block, hasTransactions, node.troubles.now.isStranger)
}

function readBlock(asked: Asked): Answer {
  const { view, params } = asked
  const name = params.id_or_num === undefined ? String(view.head.height) : String(params.id_or_num)
  const found = /^\d{1,20}$/.test(name) ? view.block(Number(name)) : view.blockOf(name)
  return tellBlock(asked, found, params.detail === true || params.detail === 'true')
}

const BLOCKS_MAX = 100

function tellBlocks(asked: Asked, start: number, end: number): Answer {
  if (end <= start || end - start > BLOCKS_MAX) return {}
  const heights = Array.from({ length: end - start }, (_, index) => start + index)
  const blocks = heights.flatMap((height) => asked.view.block(height) ?? [])
  return blocks.length === 0 ? {} : { block: blocks.map((block) => tellBlock(asked, block)) }
}

function accountJson(state: TronState, account: Account): Answer {
  const { address, balance, createdAtMs, assets, bandwidth } = account
  const keys = [{ address, weight: 1 }]
  const held = Object.entries(assets).filter(([, units]) => units > 0n)
  return {
    address,
    ...(readContract(state, address) && { type: 'Contract' }),
    ...(balance > 0n && { balance: Number(balance) }),
    ...(createdAtMs > 0 && { create_time: createdAtMs }),
    ...(bandwidth.used > 0n && {
      free_net_usage: Number(bandwidth.used),
      latest_consume_free_time: bandwidth.atMs,
    }),
    ...(held.length > 0 && { assetV2: held.map(([key, value]) => ({ key, value: Number(value) })) }),
    account_resource: {},
    owner_permission: { permission_name: 'owner', threshold: 1, keys },
    active_permission: [
      {
        type: 'Active',
        id: 2,
        permission_name: 'active',
        threshold: 1,
        operations: '7fff1fc0033e3300000000000000000000000000000000000000000000000000',
        keys,
      },
    ],
    frozenV2: [{}, { type: 'ENERGY' }, { type: 'TRON_POWER' }],
  }
}

function bandwidthJson({ view }: Asked, { bandwidth }: Account): Answer {
  const used = usedBandwidth(bandwidth, view.head.timeMs)
  return {
    ...(used > 0n && { freeNetUsed: Number(used) }),
    freeNetLimit: Number(fees.getFreeNetLimit),
    TotalNetLimit: 43_200_000_000,
    TotalNetWeight: 26_000_000_000,
  }
}

/** Nobody has staked, so nobody has energy of his own. */
function resourceJson(asked: Asked, account: Account): Answer {
  return {
    ...bandwidthJson(asked, account),
    TotalEnergyLimit: 180_000_000_000,
    TotalEnergyWeight: 19_000_000_000,
  }
}
