import { randomBytes } from 'node:crypto'
import { encodeFunctionData, type Hex } from 'viem'
import { compileContracts } from '../evm/compile_contracts.ts'
import type { LocalNetwork } from '../local_network.ts'
import { draftOn } from '../simulated/state.ts'
import { parseAddress, toBase58 } from './addresses.ts'
import { rawOf } from './builders.ts'
import type { TronNode } from './command.ts'
import { execute } from './contracts.ts'
import { sign, transactionOf } from './decode_transaction.ts'
import { readAccount } from './entries.ts'
import { fees } from './fees.ts'
import { addressOf, faucetAddress, faucetKey } from './genesis.ts'
import type { Action } from './messages.ts'
import { solidHeight } from './rules.ts'
import { check } from './submit.ts'

/** At home: no trouble of the node is one of the faucet. */
type Home = Pick<TronNode, 'chain' | 'evm'>

export function tronFaucet(node: Home): Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> {
  return {
    send: async (currency, to, units) => {
      const target = read(to)
      if (currency === 'TRX')
        return send(node, {
          type: 'TransferContract',
          owner_address: faucetAddress,
          to_address: target,
          amount: units,
        })
      if (currency !== 'USDT') throw new Error(`there is no ${currency} on TRX`)
      return send(node, {
        type: 'TriggerSmartContract',
        owner_address: faucetAddress,
        contract_address: addressOf('USDT'),
        data: onUsdt('transfer', [`0x${target.slice(2)}`, units]),
      })
    },
    balance: async (currency, address) => {
      const holder = read(address)
      if (currency === 'TRX') return readAccount(node.chain.view().state, holder)?.balance ?? 0n
      if (currency !== 'USDT') throw new Error(`there is no ${currency} on TRX`)
      return usdtOf(node, holder)
    },
    // Nobody has its key, and it is no account until somebody pays to it.
    freshAddress: () => toBase58(`41${randomBytes(20).toString('hex')}`),
  }
}

const FEE_LIMIT = 100_000_000n

/** Equal payments of one block differ by a millisecond: as bytes they would be one and the same. */
function send(node: Home, action: Action): { txHash: string } {
  const { head } = node.chain
  const ends = { head, solid: node.chain.view(solidHeight(head)).head }
  const more = action.type === 'TriggerSmartContract' ? { fee_limit: FEE_LIMIT } : {}
  for (let extraMs = 0n; ; extraMs++) {
    const rawHex = rawOf(ends, action, more, extraMs)
    const { id } = transactionOf(rawHex, [])
    if (node.chain.waiting.some((waiting) => waiting.id === id)) continue
    const tx = transactionOf(rawHex, [sign(id, faucetKey)])
    check(node, tx)
    node.chain.submit(tx)
    return { txHash: id }
  }
}

function usdtOf(node: Home, holder: string): bigint {
  const { head, state } = node.chain.view()
  const call = {
    to: addressOf('USDT'),
    caller: holder,
    value: 0n,
    data: onUsdt('balanceOf', [`0x${holder.slice(2)}`]),
    energyMax: fees.getMaxFeeLimit / fees.getEnergyFee,
  }
  return BigInt(`0x${execute(node.evm, draftOn(state), call, head).returned}`)
}

function onUsdt(functionName: string, args: readonly (Hex | bigint)[]): string {
  return encodeFunctionData({ ...compileContracts().TronTether, functionName, args }).slice(2)
}

function read(text: string): string {
  const address = parseAddress(text)
  if (address === undefined) throw new Error(`${text} is no address of TRON`)
  return address
}
