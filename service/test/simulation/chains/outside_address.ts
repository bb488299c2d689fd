import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import { accountAddress } from './read_account_tx.ts'
import { coinsAddress } from './read_coins_tx.ts'
import { tronAddress, xrpAddress } from './read_dated_tx.ts'
import { eosAddress } from './read_eos_tx.ts'
import { solanaAddress } from './read_solana_tx.ts'
import { stellarAddress } from './read_stellar_tx.ts'

const addressOn: Record<ChainId, (of: string) => string> = {
  BTC: (of) => coinsAddress(Buffer.from(of.padEnd(20).slice(-20)).toString('hex')),
  ETH: accountAddress,
  BNB: accountAddress,
  XRP: xrpAddress,
  XLM: stellarAddress,
  TRX: tronAddress,
  EOS: eosAddress,
  SOL: solanaAddress,
}

/** Where somebody outside is paid, by what they are called; the same every time. */
export function outsideAddressOn(chain: ChainId, of: string): string {
  return addressOn[chain](of)
}
