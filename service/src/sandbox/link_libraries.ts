import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { LINKED_FOLDER, type Linked, linkedLibraries, nameOfInstallation } from './linked_libraries.ts'

/** Links every library of the list, with what it needs itself, into a few files of `folder`, in place of what was there. */
export async function linkLibraries(folder = LINKED_FOLDER): Promise<void> {
  const entries = linkedLibraries.map((library) => ({
    url: import.meta.resolve(library),
    name: library.replaceAll(/[^a-z0-9]+/gi, '_'),
  }))
  const input = Object.fromEntries(entries.map(({ url, name }) => [name, fileURLToPath(url)]))
  // What was linked by halves is never where it is looked for.
  const unfinished = `${folder}.${process.pid}`
  const bundle = await rolldown({ input, platform: 'node', preserveEntrySignatures: 'strict' })
  try {
    await bundle.write({
      dir: unfinished,
      format: 'esm',
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
    })
    const urls = entries.map(({ url, name }) => [url, pathToFileURL(join(folder, `${name}.mjs`)).href])
    const linked: Linked = { installation: nameOfInstallation(), urls: Object.fromEntries(urls) }
    writeFileSync(join(unfinished, 'linked.json'), JSON.stringify(linked, null, 2))
    rmSync(folder, { recursive: true, force: true })
    renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
    await bundle.close()
  }
}
