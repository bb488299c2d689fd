import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Makes `dist`, a package of its own in JavaScript with types: `npm publish ./dist`. The workspace's package.json
 * points at the TypeScript sources, which Node refuses to run inside node_modules; so it is private, and the
 * published one is written here.
 */
const here = import.meta.dirname
const dist = join(here, 'dist')
rmSync(dist, { recursive: true, force: true })
execFileSync('npx', ['tsc', '--project', join(here, 'tsconfig.build.json')], {
  cwd: join(here, '..'),
  stdio: 'inherit',
})

type Manifest = { readonly [field: string]: unknown }
const {
  private: _private,
  scripts,
  devDependencies,
  ...manifest
} = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')) as Manifest
const published = {
  ...manifest,
  sideEffects: false,
  // AbortSignal.any is of 20.3.
  engines: { node: '>=20.3' },
  exports: { '.': { types: './index.d.ts', default: './index.js' } },
}
writeFileSync(join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
copyFileSync(join(here, 'README.md'), join(dist, 'README.md'))
copyFileSync(join(here, '..', 'LICENSE'), join(dist, 'LICENSE'))
