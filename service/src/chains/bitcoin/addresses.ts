import { Address, utils } from '@scure/btc-signer'
import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { networkFacts } from './settings.ts'

/** Kinds of output that have an address people use. */
export type OutputKind = 'pkh' | 'sh' | 'wpkh' | 'wsh' | 'tr'

export type ParsedAddress = { readonly canonical: string; readonly kind: OutputKind }

/** Bytes of `scriptPubKey` (https://github.com/bitcoin/bitcoin/blob/master/src/script/solver.cpp). */
export const scriptBytes: Record<OutputKind, number> = { pkh: 25, sh: 23, wpkh: 22, wsh: 34, tr: 34 }

/**
 * Legacy, script-hash, segwit (BIP-173) and taproot (BIP-350) addresses of this network; bech32 in lower case.
 * Pay-to-anchor and unknown witness versions are refused: anyone could take what is paid there.
 */
export function parseAddress(network: BitcoinNetwork, text: string): Outcome<ParsedAddress> {
  const malformed = refuse({
    code: 'address_malformed',
    message: `must be a Bitcoin ${network} address (legacy, P2SH, bech32 or bech32m)`,
  })
  // The decoder puts capitals into lower case, and there are letters of other scripts that become ASCII thereby.
  if (!/^[0-9A-Za-z]+$/.test(text)) return malformed
  try {
    const decoded = Address(networkFacts[network].spelling).decode(text)
    switch (decoded.type) {
      case 'tr':
        // Half of all 32-byte values are no point of the curve: nobody could ever spend. Tweaking fails on those.
        utils.taprootTweakPubkey(decoded.pubkey, new Uint8Array())
        return accept({ canonical: text.toLowerCase(), kind: 'tr' })
      case 'wpkh':
      case 'wsh':
        return accept({ canonical: text.toLowerCase(), kind: decoded.type })
      case 'pkh':
      case 'sh':
        return accept({ canonical: text, kind: decoded.type })
      default:
        return malformed
    }
  } catch {
    return malformed
  }
}

/** The canonical address an output pays to, or null for bare, data and unknown scripts. */
export function addressOfScript(network: BitcoinNetwork, script: Uint8Array): string | null {
  const coder = Address(networkFacts[network].spelling)
  const [first, second] = script
  switch (script.length) {
    case 22:
      return first === 0x00 && second === 20 ? coder.encode({ type: 'wpkh', hash: script.slice(2) }) : null
    case 34:
      if (second !== 32) return null
      if (first === 0x00) return coder.encode({ type: 'wsh', hash: script.slice(2) })
      return first === 0x51 ? coder.encode({ type: 'tr', pubkey: script.slice(2) }) : null
    case 23:
      return first === 0xa9 && second === 20 && script[22] === 0x87
        ? coder.encode({ type: 'sh', hash: script.slice(2, 22) })
        : null
    case 25:
      return first === 0x76 &&
        second === 0xa9 &&
        script[2] === 20 &&
        script[23] === 0x88 &&
        script[24] === 0xac
        ? coder.encode({ type: 'pkh', hash: script.slice(3, 23) })
        : null
    default:
      return null
  }
}
