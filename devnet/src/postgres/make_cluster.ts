import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../cache_dir.ts'
import { binaries, binariesVersion, type ServerUser, scratchFolder, serverUser } from './cluster_place.ts'

/** Where a cluster is to be, and who runs what. */
export type ClusterPlace = {
  readonly cluster: string
  /** The programs. */
  readonly native: string
  readonly user: ServerUser
  readonly password: string
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

/**
 * Makes an empty cluster in the cache of this machine, unless there is one. Every other begins as a copy of it, which takes a
 * sixth of the time.
 */
export async function makeClusterTemplate(): Promise<void> {
  const user = serverUser()
  const native = binaries(user)
  const template = templatePath()
  if (existsSync(template)) return
  const scratch = scratchFolder(user)
  try {
    const cluster = join(scratch, 'cluster')
    // Nobody knows it: a copy gets its own.
    const password = randomBytes(24).toString('base64url')
    await initialise({ cluster, native, user, password })
    // The server's user may not come where the cache is.
    const draft = `${template}.${randomBytes(6).toString('hex')}`
    await copy(cluster, draft)
    renameSync(draft, template)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Of this version of PostgreSQL, made as we make them now. */
function templatePath(): string {
  const made = createHash('sha256').update(FLAGS.join(' ')).digest('hex').slice(0, 8)
  return join(cacheDir(), `cluster-${binariesVersion()}-${process.arch}-${made}`)
}

/** False: there is none, or it is somebody else's. */
async function copyTemplate(place: ClusterPlace, draft: string): Promise<boolean> {
  const template = templatePath()
  const ownerId = place.user?.uid ?? process.getuid?.()
  if (!existsSync(template) || statSync(template).uid !== ownerId) return false
  await copy(template, draft)
  const single = ['--single', '-D', draft, '-c', 'exit_on_error=on', 'postgres']
  await run(place, 'postgres', single, `ALTER ROLE cambist PASSWORD '${place.password}'\n`)
  // As initdb leaves it: what is on the disk survives a cut of the power.
  await run(place, 'initdb', ['--sync-only', `--pgdata=${draft}`])
  return true
}

/** With owners and modes, which `cp` of Node does not keep. */
function copy(from: string, to: string): Promise<void> {
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
