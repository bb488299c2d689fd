import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkLibraries } from './link_libraries.ts'
import { type Linked, linkedLibraries } from './linked_libraries.ts'

/**
 * What: libraries that are linked into a few files are what they were, they are loaded in place of the others, and only while they
 * are what is installed; and our code takes no other way into them.
 * How: they are linked into a folder of the test's own, and a process tells what it loads.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-linked-'))
const libraries = join(folder, 'libraries')

beforeAll(() => linkLibraries(libraries))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Told = { readonly count: number; readonly libraries: Record<string, { names: string[]; url: string }> }

/** What a process loads that was told to use what is linked. */
async function load(): Promise<Told> {
  const program = `
    import { useLinkedLibraries } from './linked_libraries.ts'
    const count = useLinkedLibraries(${JSON.stringify(libraries)})
    const libraries = {}
    for (const library of ${JSON.stringify(linkedLibraries)})
      libraries[library] = { names: Object.keys(await import(library)).sort(), url: import.meta.resolve(library) }
    console.log(JSON.stringify({ count, libraries }))
  `
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
  return JSON.parse(stdout) as Told
}

test('each library is loaded from the files that it was linked into, and exports what it did', async () => {
  const told = await load()
  expect(told.count).toBe(linkedLibraries.length)
  for (const library of linkedLibraries) {
    const names = Object.keys((await import(library)) as object).sort()
    expect(told.libraries[library]?.names, library).toEqual(names)
    expect(told.libraries[library]?.url).toContain(pathToFileURL(libraries).href)
  }
})

test('what was linked of other versions than are installed is left alone', async () => {
  const file = join(libraries, 'linked.json')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(text) as Linked), installation: 'another' }))
  const told = await load()
  writeFileSync(file, text)
  expect(told.count).toBe(0)
  for (const { url } of Object.values(told.libraries)) expect(url).toContain('/node_modules/')
})

test('linking again replaces what was there, and leaves nothing beside it', async () => {
  writeFileSync(join(libraries, 'of_an_earlier_version.mjs'), '')
  await linkLibraries(libraries)
  expect(readdirSync(libraries)).not.toContain('of_an_earlier_version.mjs')
  expect(readdirSync(folder)).toEqual(['libraries'])
})

/** One library that is loaded twice has two of each of its classes, and one is no instance of the other. */
test('every way into a linked library is linked', () => {
  const packageOf = (specifier: string) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? ''
  const packages = new Set(linkedLibraries.map(packageOf))
  const taken = new Set<string>()
  for (const source of ['../..', '../../../devnet', '../../../sdk']) {
    const root = join(import.meta.dirname, source, 'src')
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue
      const text = readFileSync(join(root, name), 'utf8')
      for (const [, specifier = ''] of text.matchAll(/(?:\bfrom|\bimport\()\s*'([^'.][^']*)'/g))
        if (packages.has(packageOf(specifier))) taken.add(specifier)
    }
  }
  expect([...taken].sort()).toEqual([...linkedLibraries].sort())
})
