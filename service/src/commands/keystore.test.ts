import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openKeystore } from '../signer/keystore.ts'
import { explainFailure } from './explain_failure.ts'
import { registerKeystoreCommands } from './keystore.ts'

let folder: string
const at = (name: string) => join(folder, name)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-keystore-'))
  writeFileSync(at('passphrase'), 'correct horse battery staple\n')
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** What `cambist keystore create …` prints. */
const create = (...args: string[]) => run('create', ...args)

async function run(...args: string[]): Promise<string> {
  const printed: string[] = []
  const keystore = new Command('keystore').exitOverride()
  registerKeystoreCommands(keystore, { print: (text) => printed.push(text) })
  await keystore.parseAsync(args, { from: 'user' })
  return printed.join('\n')
}

async function seedIn(path: string): Promise<string> {
  const passphrase = 'correct horse battery staple'
  const opened = await openKeystore({ path, passphrase, environment: 'production' })
  return opened.ok ? Buffer.from(opened.value.seed).toString('hex') : opened.rejection.message
}

test('what was created is restored from its words alone, however they were written down', async () => {
  const printed = await create(at('first.json'), '--passphrase-file', at('passphrase'))
  const words = printed.trim().split('\n').at(-1)?.trim().split(' ') ?? []
  expect(words).toHaveLength(24)
  // One alone may be a field's name or part of a path.
  const anyThree = new RegExp(
    words
      .slice(2)
      .map((_, first) => words.slice(first, first + 3).join('\\W+'))
      .join('|'),
  )
  expect(printed).toMatch(anyThree)
  expect(readFileSync(at('first.json'), 'utf8')).not.toMatch(anyThree)
  writeFileSync(at('words'), `${words.map((word) => word.toUpperCase()).join('\n')}\n`)

  const options = ['--passphrase-file', at('passphrase'), '--mnemonic-file', at('words')]
  expect(await create(at('second.json'), ...options)).not.toMatch(anyThree)
  const seed = await seedIn(at('first.json'))
  expect(seed).toMatch(/^[0-9a-f]{128}$/)
  expect(await seedIn(at('second.json'))).toBe(seed)
})

test('the key that an EOS account has to obey is shown, and nothing else of the keystore', async () => {
  const given = ['--passphrase-file', at('passphrase')]
  await create(at('first.json'), ...given)
  const key = await run('eos-key', at('first.json'), ...given)
  expect(key).toMatch(/^PUB_K1_[1-9A-HJ-NP-Za-km-z]{50}$/)
  expect(await run('eos-key', at('first.json'), ...given)).toBe(key)
  await expect(run('eos-key', at('first.json'), ...given, '--test')).rejects.toThrow()
})

test('what cannot be done is told without a stack, and writes nothing', async () => {
  writeFileSync(at('empty'), '\n')
  writeFileSync(at('wrong'), `${'abandon '.repeat(24)}\n`)
  const given = ['--passphrase-file', at('passphrase')]
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[at('passphrase'), ...given], /exists and is not overwritten/],
    [[at('new.json'), '--passphrase-file', at('empty')], /the first line of .* is empty/],
    [[at('new.json'), '--passphrase-file', at('none')], /Cannot open .*none: there is no such file/],
    [[at('new.json'), ...given, '--mnemonic-file', at('wrong')], /not the words of a seed/],
    [[join(folder, 'no', 'new.json'), ...given], /there is no such file or folder/],
  ]
  for (const [args, told] of cases) {
    const failure = await create(...args).catch((error: unknown) => error)
    expect(explainFailure(failure), String(failure)).toMatch(told)
  }
  expect(await seedIn(at('new.json'))).toMatch(/does not exist/)
  expect(readFileSync(at('passphrase'), 'utf8')).toBe('correct horse battery staple\n')
})
