import type { Chain, DraftRejection } from '../../../src/chains/chain.ts'
import { parseAddress } from '../../../src/chains/evm/address.ts'
import { draft, raise } from '../../../src/chains/evm/draft.ts'
import { type GasPrice, priceWithin } from '../../../src/chains/evm/fees.ts'
import { assert } from '../../../src/domain/assert.ts'
import { type AssetId, nativeAsset } from '../../../src/domain/catalog/assets.ts'
import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../../src/domain/money/amount.ts'
import { accept, refuse } from '../../../src/domain/outcome.ts'
import type { Outflow } from '../../../src/domain/payouts/intent.ts'
import { type AccountNode, COIN_GAS, TOKEN_GAS } from './account_node.ts'
import { tellOnce, toOurs, unknownWithoutAnswer } from './coins_chain.ts'
import { type Line, LineFailed } from './line.ts'

/** As the real connector says of a token that it cannot estimate. */
const QUOTED_TOKEN_GAS = 90_000n

export type AccountRules = {
  readonly id: Extract<ChainId, 'ETH' | 'BNB'>
  readonly evmChainId: number
  readonly capWei: bigint
  readonly gasLimitMax: bigint
  /** Listed assets by their contract. */
  readonly tokens: Readonly<Record<string, AssetId>>
}

export const accountRules = {
  ETH: {
    id: 'ETH',
    evmChainId: 31_337,
    capWei: 500n * 10n ** 9n,
    gasLimitMax: 1_000_000n,
    tokens: {
      '0xdAC17F958D2ee523a2206206994597C13D831ec7': 'USDT:ERC20',
      '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48': 'USDC:ERC20',
    },
  },
  BNB: {
    id: 'BNB',
    evmChainId: 56,
    capWei: 500n * 10n ** 9n,
    gasLimitMax: 1_000_000n,
    tokens: {
      '0x55d398326f99059fF775485246999027B3197955': 'USDT:BEP20',
      '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d': 'USDC:BEP20',
    },
  },
} as const satisfies Record<'ETH' | 'BNB', AccountRules>

type Asker = {
  readonly ask: Line<AccountNode>
  readonly rules: AccountRules
  readonly native: AssetId
  readonly reserveAddress: () => Promise<string>
}

/** An account chain over a simulated node: drafts, raises and reads addresses by the code of the real connector. */
export function accountChain(
  rules: AccountRules,
  ask: Line<AccountNode>,
  reserveAddress: () => Promise<string>,
): Chain {
  const { id, evmChainId, capWei, gasLimitMax, tokens } = rules
  const native = nativeAsset(id).id
  const contracts = new Map(Object.entries(tokens).map(([contract, asset]) => [asset, contract]))
  const known = new Set(Object.keys(tokens).map((contract) => contract.toLowerCase()))
  const drafter = {
    chain: id,
    evmChainId,
    capWei,
    gasLimitMax,
    contractOf: (asset: AssetId) => contracts.get(asset) ?? null,
    parseAddress: (text: string) => parseAddress(text, known),
  }
  return {
    id,
    family: 'evm',
    model: 'account',
    assets: [native, ...contracts.keys()],
    parseAddress: drafter.parseAddress,
    checkIdentity: async () => {
      await ask('head')
    },
    head: () => ask('head'),
    blockHash: (height) => ask('blockHash', height),
    readBlock: async (height, findOurs) => {
      const block = await ask('block', height)
      return block && { ...block, transfers: await toOurs(block.transfers, findOurs) }
    },
    readMempool: tellOnce(() => ask('waiting')),
    lookup: (txHash) => ask('lookup', txHash),
    estimatePayout: async (asset) => {
      const asked = await ask('askedFees')
      const gas = asset === native ? COIN_GAS : QUOTED_TOKEN_GAS
      return {
        cost: fromChainUnits(native, gas * (2n * asked.baseWei + asked.tipWei)),
        isAboveFeeCap: !priceWithin(capWei, asked).ok,
      }
    },
    bid: (outflow) => bid({ ask, rules, native, reserveAddress }, outflow),
    draft: (outflow, feeBid, funds) => draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid, held) => raise(drafter, previous, feeBid, held),
    broadcast: (tx) => unknownWithoutAnswer(ask('send', tx.bytes)),
    balance: async (asset, addresses, height) =>
      fromChainUnits(asset, await ask('holds', asset, addresses, ...(height === undefined ? [] : [height])))
        .units,
    minedNonce: (address, height) =>
      ask('minedNonce', address, ...(height === undefined ? ([] as const) : ([height] as const))),
  }
}

async function bid(asker: Asker, outflow: Outflow): ReturnType<Chain['bid']> {
  const { ask, rules, native } = asker
  try {
    const price = priceWithin(rules.capWei, await ask('askedFees'))
    if (!price.ok) return price
    const gasLimit = outflow.asset === native ? COIN_GAS : TOKEN_GAS + 25_000n
    const refusal = outflow.kind === 'filler' ? null : await whyNot(asker, outflow, gasLimit, price.value)
    if (refusal !== null) return refuse(refusal)
    return accept({ family: 'evm', gasLimit, ...price.value, bringingGas: COIN_GAS })
  } catch (error) {
    if (error instanceof LineFailed) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

/** What the simulated payment would come to, as the real connector sees it. */
async function whyNot(
  { ask, native, reserveAddress }: Asker,
  outflow: Outflow,
  gasLimit: bigint,
  { maxFeePerGasWei }: GasPrice,
): Promise<DraftRejection | null> {
  const { asset, address } = outflow
  const units = toChainUnits(amountOf(asset, outflow.units))
  if (outflow.from !== undefined) {
    if (asset === native || (await ask('holds', asset, [outflow.from.address])) >= units) return null
    return { code: 'funds', message: `${outflow.from.address} holds less than ${units} units of ${asset}` }
  }
  assert(units > 0n, 'a payout pays something')
  const reserve = await reserveAddress()
  const heldWei = await ask('holds', native, [reserve])
  if (asset !== native && (await ask('holds', asset, [reserve])) < units)
    return { code: 'funds', message: `the reserve holds less than ${units} units of ${asset}` }
  if (asset === native && heldWei < units)
    return { code: 'funds', message: `the reserve holds less than ${units} wei` }
  if (!(await ask('isPayable', address)))
    return { code: 'destination', message: 'the address cannot be paid' }
  const neededWei = gasLimit * maxFeePerGasWei + (asset === native ? units : 0n)
  return heldWei < neededWei ? { code: 'funds', message: `with fees ${neededWei} wei are needed` } : null
}
