import { randomBytes } from 'node:crypto'
import { encodeAccountID, isValidXAddress, xAddressToClassicAddress } from 'ripple-address-codec'
import { encode, encodeForSigning } from 'ripple-binary-codec'
import { sign } from 'ripple-keypairs'
import type { LocalNetwork } from '../local_network.ts'
import type { SimulatedChain } from '../simulated/chain.ts'
import { decodeTransaction } from './decode_transaction.ts'
import { readAccount } from './entries.ts'
import { BASE_FEE } from './reserves.ts'
import { genesisAccount, genesisKeys, NETWORK_ID, type Xrp } from './rules.ts'
import { codeOf } from './submit.ts'

export function xrpFaucet(
  chain: SimulatedChain<Xrp>,
): Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> {
  return {
    send: async (currency, to, units, _coins, tag) => {
      if (currency !== 'XRP') throw new Error(`there is no ${currency} on XRP`)
      return send(chain, to, units, tag)
    },
    balance: async (currency, address) => {
      if (currency !== 'XRP') throw new Error(`there is no ${currency} on XRP`)
      const { account } = splitAddress(address)
      return BigInt(readAccount(chain.view().state, account)?.Balance ?? 0)
    },
    // Nobody has its key, and it is no account until somebody pays the reserve into it.
    freshAddress: () => encodeAccountID(randomBytes(20)),
  }
}

function send(
  chain: SimulatedChain<Xrp>,
  to: string,
  drops: bigint,
  tag: string | undefined,
): { txHash: string } {
  const { account, tag: tagInside } = splitAddress(to)
  if (tag !== undefined && tagInside !== undefined && tag !== tagInside)
    throw new Error(`the address says tag ${tagInside}, not ${tag}`)
  const DestinationTag = tag ?? tagInside
  if (
    DestinationTag !== undefined &&
    !(/^\d{1,10}$/.test(DestinationTag) && Number(DestinationTag) < 2 ** 32)
  )
    throw new Error(`a destination tag is a number below 4294967296, not ${DestinationTag}`)
  const unsigned = {
    TransactionType: 'Payment',
    Account: genesisAccount,
    Destination: account,
    ...(DestinationTag !== undefined && { DestinationTag: Number(DestinationTag) }),
    Amount: String(drops),
    Fee: String(BASE_FEE),
    Sequence: readAccount(chain.open(), genesisAccount)?.Sequence,
    NetworkID: NETWORK_ID,
    SigningPubKey: genesisKeys.publicKey,
  }
  const TxnSignature = sign(encodeForSigning(unsigned), genesisKeys.privateKey)
  const tx = decodeTransaction(encode({ ...unsigned, TxnSignature }))
  const code = codeOf(chain, tx, NETWORK_ID)
  if (code !== 'tesSUCCESS') throw new Error(`the faucet's payment to ${to} is refused: ${code}`)
  chain.submit(tx)
  return { txHash: tx.id }
}

/** `tag` in decimal digits, when the address carries one. */
function splitAddress(address: string): { account: string; tag?: string } {
  if (!isValidXAddress(address)) return { account: address }
  const { classicAddress, tag } = xAddressToClassicAddress(address)
  return tag === false ? { account: classicAddress } : { account: classicAddress, tag: String(tag) }
}
