import { readFileSync } from 'node:fs'
import { assert } from '../domain/assert.ts'

/**
 * The passphrase from an inherited file descriptor or a credential file: unlike environment and arguments, neither
 * shows in process lists nor is handed on to children. One final line end is not part of it.
 */
export function readPassphrase(from: { readonly fd: number } | { readonly file: string }): string {
  const bytes = readFileSync('fd' in from ? from.fd : from.file)
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, '')
  assert(text.length > 0, 'the passphrase is not empty')
  assert(text.length <= 1024 && !/[\r\n]/.test(text), 'the passphrase is one line of at most 1024 characters')
  return text
}
