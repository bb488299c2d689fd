import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** A program that a Debian package has. */
export type DebianProgram = {
  readonly name: string
  /** The package's whole name; when several fit, the one with the highest number is taken. */
  readonly package: RegExp
  /** Where the package puts it, as a glob. */
  readonly path: string
}

const SUITE = 'sid'
const KEYRINGS = [
  '/usr/share/keyrings/debian-archive-keyring.pgp',
  '/usr/share/keyrings/debian-archive-keyring.gpg',
  '/etc/apt/trusted.gpg.d/debian-archive-keyring.gpg',
]

/** The command of a program that an earlier download left in `folder`. */
export function downloadedProgram({ path }: DebianProgram, folder: string): string[] | undefined {
  const root = join(folder, 'root')
  const [program] = globSync(path, { cwd: root })
  if (program === undefined) return undefined
  const libraries = libraryFolders(root)
  const loader = libraries
    .flatMap((dir) => readdirSync(dir).map((name) => join(dir, name)))
    .find((candidate) => /\/ld-linux[^/]*\.so\.\d+$/.test(candidate))
  // The package is built for a newer C library than the machine's, so it brings its own and its loader.
  return loader === undefined
    ? undefined
    : [loader, '--library-path', libraries.join(':'), join(root, program)]
}

/**
 * Downloads and unpacks a program into `folder` with apt, without installing anything: private apt state, signed by
 * the Debian archive key, from the mirrors that this machine's own apt uses. Throws with a reason. Made beside and
 * renamed: two processes at once both end with one whole folder.
 */
export async function downloadProgram(
  program: DebianProgram,
  folder: string,
  log: (line: string) => void,
): Promise<string[]> {
  const keyring = KEYRINGS.find((path) => existsSync(path))
  if (keyring === undefined) throw new Error('this machine has no Debian archive keyring')
  const mirrors = debianMirrors()
  if (mirrors.length === 0) throw new Error('the apt sources of this machine name no Debian mirror')
  const draft = `${folder}.${randomBytes(6).toString('hex')}`
  try {
    log(`${program.name}: none on this machine, downloading it with apt into ${folder}`)
    const apt = await privateApt(draft, mirrors, keyring)
    await unpackWithLibraries(apt, draft, program)
    rmSync(join(draft, 'apt'), { recursive: true, force: true })
    rmSync(join(draft, 'packages'), { recursive: true, force: true })
    renameUnlessThere(draft, folder)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  const command = downloadedProgram(program, folder)
  if (command === undefined) throw new Error(`its package came without ${program.name}`)
  return command
}

type Apt = (program: 'apt-get' | 'apt-cache', ...args: string[]) => Promise<string>

/** An apt whose configuration, lists and database lie in our folder: the machine's stay as they are. */
async function privateApt(draft: string, mirrors: string[], keyring: string): Promise<Apt> {
  const root = join(draft, 'apt')
  for (const dir of ['etc/apt/preferences.d', 'etc/apt/sources.list.d', 'var/lib/apt/lists/partial']) {
    mkdirSync(join(root, dir), { recursive: true })
  }
  mkdirSync(join(root, 'var/cache/apt/archives/partial'), { recursive: true })
  mkdirSync(join(draft, 'packages'), { recursive: true })
  writeFileSync(join(root, 'status'), '')
  const settings = {
    Dir: root,
    'Dir::State::status': join(root, 'status'),
    'APT::Sandbox::User': process.getuid?.() === 0 ? 'root' : '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const apt: Apt = async (program, ...args) => {
    const options = { cwd: join(draft, 'packages'), maxBuffer: 1 << 26, timeout: 120_000 }
    return (await execute(program, [...flags, ...args], options)).stdout
  }
  let lastError: unknown
  for (const mirror of mirrors) {
    writeFileSync(join(root, 'etc/apt/sources.list'), `deb [signed-by=${keyring}] ${mirror} ${SUITE} main\n`)
    try {
      await apt('apt-get', 'update', '--error-on=any')
      return apt
    } catch (error) {
      lastError = error
    }
  }
  throw new Error('no Debian mirror of this machine answered', { cause: lastError })
}

/**
 * The loader says what is missing; the dependencies of what we have say where it may be. Level by level,
 * rather than a list that goes stale or the whole closure with its init system.
 */
async function unpackWithLibraries(apt: Apt, draft: string, program: DebianProgram): Promise<void> {
  const levelsMax = 8
  const root = join(draft, 'root')
  const unpacked = new Set<string>()
  let next = [await packageOf(apt, program)]
  for (let level = 0; level < levelsMax && next.length > 0; level++) {
    await apt('apt-get', 'download', ...next)
    for (const file of readdirSync(join(draft, 'packages'))) {
      await execute('dpkg', ['-x', join(draft, 'packages', file), root])
      rmSync(join(draft, 'packages', file))
    }
    for (const name of next) unpacked.add(name)
    if (level > 0 && (await missingLibraries(draft, program)).length === 0) return
    next = (await directLibraries(apt, next)).filter((name) => !unpacked.has(name))
  }
  const missing = await missingLibraries(draft, program)
  if (missing.length > 0) throw new Error(`libraries not found: ${missing.join(', ')}`)
}

async function packageOf(apt: Apt, program: DebianProgram): Promise<string> {
  const names = (await apt('apt-cache', 'pkgnames')).split('\n').filter((name) => program.package.test(name))
  const newest = names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)
  if (newest === undefined) throw new Error(`Debian has no package with ${program.name}`)
  return newest
}

/** Without LLVM, which only PostgreSQL's server loads, and only when it compiles a query. */
async function directLibraries(apt: Apt, packages: string[]): Promise<string[]> {
  const text = await apt('apt-cache', 'depends', '--important', ...packages)
  return [...new Set(namesOf(text, /^\s+\|?(?:Pre)?Depends: (lib(?!llvm)[^\s:<>]+)/gm))]
}

async function missingLibraries(draft: string, program: DebianProgram): Promise<string[]> {
  const command = downloadedProgram(program, draft)
  if (command === undefined) return ['the loader']
  const [loader = '', ...args] = command
  chmodSync(loader, 0o755)
  try {
    const { stdout } = await execute(loader, ['--list', ...args])
    return namesOf(stdout, /^\s*(\S+) => not found/gm)
  } catch (error) {
    // Some loaders list everything that is missing, others stop at the first with this sentence.
    const { stderr = '' } = error as { stderr?: string }
    const names = namesOf(stderr, /libraries: (\S+): cannot open/g)
    if (names.length === 0) throw error
    return names
  }
}

function namesOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '')
}

function libraryFolders(root: string): string[] {
  return ['usr/lib', 'lib']
    .map((dir) => join(root, dir))
    .filter((dir) => existsSync(dir))
    .flatMap((dir) =>
      readdirSync(dir)
        .filter((name) => name.endsWith('-linux-gnu'))
        .map((name) => join(dir, name)),
    )
}

/** Reads both forms of sources.list(5) and keeps the plain Debian archives. */
function debianMirrors(): string[] {
  const found: { uri: string; signedBy: string }[] = []
  for (const text of sourceFiles('.list')) {
    for (const match of text.matchAll(/^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+\S+\s+.*\bmain\b/gm)) {
      found.push({ uri: match[2] ?? '', signedBy: match[1] ?? '' })
    }
  }
  for (const text of sourceFiles('.sources')) {
    for (const stanza of text.split(/\n\s*\n/)) {
      const field = (name: string) =>
        new RegExp(`^${name}:[ \\t]*(.*)$`, 'im').exec(stanza)?.[1]?.trim() ?? ''
      if (!/\bdeb\b/.test(field('Types')) || !/\bmain\b/.test(field('Components'))) continue
      for (const uri of field('URIs').split(/\s+/)) found.push({ uri, signedBy: field('Signed-By') })
    }
  }
  const isArchive = ({ uri }: { uri: string }) => /\/debian\/?$/.test(uri)
  const isDebian = (source: { uri: string; signedBy: string }) =>
    source.uri !== '' &&
    !/security/.test(source.uri) &&
    (isArchive(source) || /debian-archive/.test(source.signedBy))
  const candidates = found.filter(isDebian).sort((a, b) => Number(isArchive(b)) - Number(isArchive(a)))
  return [...new Set(candidates.map(({ uri }) => uri))]
}

function sourceFiles(suffix: '.list' | '.sources'): string[] {
  const dir = '/etc/apt/sources.list.d'
  const inDir = existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name)) : []
  return ['/etc/apt/sources.list', ...inDir]
    .filter((path) => path.endsWith(suffix) && existsSync(path))
    .map((path) => readFileSync(path, 'utf8'))
}

function renameUnlessThere(draft: string, folder: string): void {
  try {
    renameSync(draft, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  }
}
