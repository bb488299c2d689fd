import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../cache_dir.ts'
import { binaries, binariesVersion, type ServerUser } from './cluster_place.ts'

/** Where a cluster is to be, and who runs what. */
export type ClusterPlace = {
  readonly cluster: string
  /** The programs. */
  readonly native: string
  readonly user: ServerUser
  readonly password: string
  /** What was made ahead under this name is what it begins with, where there is such a one. */
  readonly template?: string
}

/** Without the locale flags, initdb takes LC_ALL: a missing locale fails, C makes an SQL_ASCII database. */
const FLAGS = [
  '--username=cambist',
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--no-locale',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
]

/** In a draft folder that is renamed at the end, so that a kill in between leaves no half cluster. */
export async function makeCluster(
  place: ClusterPlace,
  log: (line: string) => void = () => {},
): Promise<void> {
  const draft = `${place.cluster}.draft`
  rmSync(draft, { recursive: true, force: true })
  const isCopied = await copyTemplate(place, draft).catch((error: unknown) => {
    log(
      `postgres: the cluster that was made ahead is of no use: ${error instanceof Error ? error.message : error}`,
    )
    rmSync(draft, { recursive: true, force: true })
    return false
  })
  if (!isCopied) await initialise({ ...place, cluster: draft })
  renameSync(draft, place.cluster)
}

async function initialise(place: ClusterPlace): Promise<void> {
  const { cluster, user, password } = place
  const passwordFile = `${cluster}.password`
  mkdirSync(cluster, { mode: 0o700 })
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (user !== undefined) for (const path of [cluster, passwordFile]) chownSync(path, user.uid, user.gid)
  try {
    await run(place, 'initdb', [`--pgdata=${cluster}`, `--pwfile=${passwordFile}`, ...FLAGS])
  } finally {
    rmSync(passwordFile)
  }
}

/** An empty cluster with a password that nobody is told. */
export async function makeEmptyCluster(cluster: string, user: ServerUser): Promise<void> {
  const password = randomBytes(24).toString('base64url')
  await initialise({ cluster, native: binaries(user), user, password })
}

/** False: there is none. */
async function copyTemplate(place: ClusterPlace, draft: string): Promise<boolean> {
  const template = findTemplate(place)
  if (template === null) return false
  await copyCluster(template, draft)
  const single = ['--single', '-D', draft, '-c', 'exit_on_error=on', 'postgres']
  await run(place, 'postgres', single, `ALTER ROLE cambist PASSWORD '${place.password}'\n`)
  // As initdb leaves it: what is on the disk survives a cut of the power.
  await run(place, 'initdb', ['--sync-only', `--pgdata=${draft}`])
  return true
}

/** What was made ahead as the cluster wants it, or else an empty one; neither if it is somebody else's. */
function findTemplate({ template, user }: ClusterPlace): string | null {
  const ownerId = user?.uid ?? process.getuid?.()
  const paths = [...(template === undefined ? [] : [templatePath(template)]), templatePath()]
  return paths.find((path) => existsSync(path) && statSync(path).uid === ownerId) ?? null
}

/** Where in the cache of this machine clusters are that were made ahead by this version of PostgreSQL, as we make them now. */
export function templatePath(name?: string): string {
  const made = createHash('sha256').update(FLAGS.join(' ')).digest('hex').slice(0, 8)
  const parts = ['cluster', binariesVersion(), process.arch, made, ...(name === undefined ? [] : [name])]
  return join(cacheDir(), parts.join('-'))
}

/** With owners and modes, which `cp` of Node does not keep. */
export function copyCluster(from: string, to: string): Promise<void> {
  return runProgram('cp', ['-a', from, to], {})
}

function run(
  { native, user }: ClusterPlace,
  program: string,
  args: readonly string[],
  input = '',
): Promise<void> {
  return runProgram(join(native, 'bin', program), args, { user, input })
}

/** Rejects with what the program said when it does not end well. */
function runProgram(
  program: string,
  args: readonly string[],
  { user, input = '' }: { readonly user?: ServerUser; readonly input?: string },
): Promise<void> {
  return new Promise((done, failed) => {
    const child = spawn(program, args, {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      ...user,
    })
    let output = ''
    const collect = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', failed)
    // A program that ended before it has read says so by its exit code.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    child.once('close', (code) =>
      code === 0 ? done() : failed(new Error(`${program} ended with ${code}:\n${output.slice(-2000)}`)),
    )
  })
}
