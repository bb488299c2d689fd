import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Libraries of hundreds of ES modules each, of which loading takes more than what they do then: the installation links each into a
 * few files (link_libraries.ts), and the sandbox loads those. Every way into them that our code takes is here, so that no library is
 * there twice. `serve` loads them as they came.
 */
export const linkedLibraries = [
  '@noble/curves/secp256k1.js',
  '@noble/hashes/sha2.js',
  '@noble/hashes/sha3.js',
  '@scure/base',
  '@scure/bip32',
  '@scure/bip39',
  '@scure/bip39/wordlists/english.js',
  '@scure/btc-signer',
  '@scure/btc-signer/script.js',
  '@scure/btc-signer/utils.js',
  '@solana-program/system',
  '@solana-program/token',
  '@solana/kit',
  '@stellar/stellar-sdk/base',
  'typebox',
  'viem',
  'viem/accounts',
  'viem/utils',
] as const

const MODULES = new URL('../../../node_modules/', import.meta.url)
export const LINKED_FOLDER = fileURLToPath(new URL('.cache/cambist-libraries', MODULES))

/** What was linked, and of which installation. `urls`: the module that a library is, and the file that stands for it. */
export type Linked = { readonly installation: string; readonly urls: Readonly<Record<string, string>> }

/** From now on, this process loads linked libraries in place of those that were linked. Answers of how many. */
export function useLinkedLibraries(folder = LINKED_FOLDER): number {
  const urls = readLinked(folder)
  if (urls.size === 0) return 0
  registerHooks({
    resolve: (specifier, context, next) => {
      const resolved = next(specifier, context)
      const linked = urls.get(resolved.url)
      return linked === undefined ? resolved : { ...resolved, url: linked, format: 'module' }
    },
  })
  return urls.size
}

/** Nothing where nothing was linked, or other versions than are installed now. */
function readLinked(folder: string): ReadonlyMap<string, string> {
  const file = join(folder, 'linked.json')
  if (!existsSync(file)) return new Map()
  const { installation, urls } = JSON.parse(readFileSync(file, 'utf8')) as Linked
  return installation === nameOfInstallation() ? new Map(Object.entries(urls)) : new Map()
}

/** By every version that is installed, as npm writes them down. */
export function nameOfInstallation(): string {
  return createHash('sha256')
    .update(readFileSync(new URL('.package-lock.json', MODULES)))
    .digest('hex')
}
