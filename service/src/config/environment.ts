import { createSecretKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseDecimal } from '../domain/money/decimal.ts'
import { ConfigError, type Problem } from './problems.ts'
import { findUnknownVariables } from './unknown_variables.ts'
import { type Shape, type VariableName, variableOf } from './variables.ts'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * Reads variables and collects what is wrong with them instead of stopping at the first. A reading method that
 * reports a problem answers a placeholder; `finish` throws before anyone can use it.
 */
export type Environment = {
  report(variable: VariableName, message: string): void
  /**
   * The value without what is blank around it, or the default; an empty value counts as unset. A space before the address of a
   * database made it the name of one, password and all, on the host `base`.
   */
  text(name: VariableName): string | null
  isSet(name: VariableName): boolean
  required(name: VariableName, why: string): string
  integer(name: VariableName, min: number, max: number): number
  /** A plain decimal as units of 10^-decimals. */
  decimal(name: VariableName, decimals: number): bigint
  oneOf<Choice extends string>(name: VariableName, choices: readonly Choice[]): Choice
  /** Comma-separated, trimmed, empty entries dropped. */
  list(name: VariableName): readonly string[]
  url(name: VariableName, protocols: readonly string[]): string | null
  /** 32-byte keys of a file, one a line, in hex or base64. Empty when the variable is not set. */
  keys(name: VariableName): readonly KeyObject[]
  finish<Config extends object>(config: Config): Config
}

export function readEnvironment(env: Env, shape: Shape): Environment {
  const problems: Problem[] = findUnknownVariables(env, shape)
  const report = (variable: VariableName, message: string) => {
    problems.push({ variable, message })
  }
  const defaultOf = (name: VariableName) => {
    const fallback = variableOf(name).default
    return fallback === null || typeof fallback === 'string' ? fallback : fallback[shape]
  }
  const given = (name: VariableName) => (env[name] ?? '').trim()
  const isSet = (name: VariableName) => given(name) !== ''
  const text = (name: VariableName) => (isSet(name) ? given(name) : defaultOf(name))

  return {
    report,
    text,
    isSet,
    required: (name, why) => {
      const value = text(name)
      if (value === null) report(name, `is needed ${why}; set it${exampleOf(name)}`)
      return value ?? ''
    },
    integer: (name, min, max) => {
      const value = text(name) ?? ''
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      if (number >= min && number <= max) return number
      report(name, `must be a whole number from ${min} to ${max}, not ${quote(value)}`)
      return min
    },
    decimal: (name, decimals) => {
      const value = text(name) ?? ''
      const parsed = parseDecimal(value, decimals)
      if (parsed.ok) return parsed.value
      report(name, `${parsed.rejection.message}, not ${quote(value)}`)
      return 0n
    },
    oneOf: (name, choices) => {
      const value = text(name) ?? ''
      const choice = choices.find((candidate) => candidate === value)
      if (choice === undefined) report(name, `must be one of ${choices.join(', ')}, not ${quote(value)}`)
      return choice ?? (choices[0] as (typeof choices)[number])
    },
    list: (name) => splitList(text(name) ?? ''),
    url: (name, protocols) => {
      const value = text(name)
      const problem = value === null ? null : whyNoUrl(value, protocols)
      if (problem !== null) report(name, problem)
      return value
    },
    keys: (name) => {
      const path = text(name)
      return path === null ? [] : readKeys(path, (message) => report(name, message))
    },
    finish: (config) => {
      if (problems.length > 0) throw new ConfigError(problems)
      return deepFreeze(config)
    },
  }
}

/** The value may hold a password, so it is not repeated. */
function whyNoUrl(text: string, protocols: readonly string[]): string | null {
  // With its slashes: `postgres:cambist` is one too, of the database `ambist`.
  const beginnings = protocols.map((protocol) => `${protocol}//`)
  const beginning = beginnings.find((each) => text.toLowerCase().startsWith(each))
  if (beginning === undefined) return `must be a URL that starts with ${beginnings.join(' or ')}`
  // One in a password makes its beginning a port, and the user the host; which of both was meant cannot be told.
  if (/^[^@]*[/?][^@]*@/.test(text.slice(beginning.length)))
    return 'has a / or ? before its first @, where host and port end; in a user or password write them as %2F and %3F, and an @ behind the host as %40'
  return URL.canParse(text) ? null : 'cannot be read as a URL; look at its host and port'
}

/** What follows a `#` is no part of the address: one in a password makes its beginning another host and port. */
export function refuseHash(from: Environment, name: VariableName): void {
  if (from.text(name)?.includes('#') === true)
    from.report(name, 'has a #, which ends the address; in a user or password write it as %23')
}

/** What is wrong with a user or password is told without repeating them. */
export function refuseUndecodable(from: Environment, name: VariableName): void {
  const url = URL.parse(from.text(name) ?? '')
  if (url === null || isDecodable(`${url.username}:${url.password}`)) return
  from.report(name, 'has a % in its user or password that stands for no character; write it as %25')
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

export function readDatabaseUrl(
  from: Environment,
  name: 'DATABASE_URL' | 'SIGNER_DATABASE_URL',
): string | null {
  refuseHash(from, name)
  refuseUndecodable(from, name)
  return from.url(name, ['postgres:', 'postgresql:'])
}

export function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** First line of a file or descriptor, without its line end. */
export function readFirstLine(source: string | number): string {
  const [line = ''] = readFileSync(source, 'utf8').split(/\r?\n/, 1)
  return line
}

function readKeys(path: string, report: (message: string) => void): readonly KeyObject[] {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    // What is told ends in logs.
    if (decodeKey(path) !== null)
      report('must name a file that holds a key, and not be one; make another one')
    else report(`cannot read ${path} (${codeOf(error)}); it must name a readable file`)
    return []
  }
  const lines = content
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  if (lines.length === 0) report(`${path} is empty; write one with: openssl rand -hex 32 > ${path}`)
  return lines.flatMap((line, index) => {
    const bytes = decodeKey(line)
    if (bytes !== null && new Set(bytes).size >= 8) return [createSecretKey(bytes)]
    const trouble = bytes === null ? 'is not 32 bytes in hex or base64' : 'is not random'
    report(`line ${index + 1} of ${path} ${trouble}; make one with: openssl rand -hex 32`)
    return []
  })
}

function decodeKey(line: string): Buffer | null {
  if (/^[0-9a-fA-F]{64}$/.test(line)) return Buffer.from(line, 'hex')
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(line)) return Buffer.from(line, 'base64')
  return null
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}

function exampleOf(name: VariableName): string {
  const { example } = variableOf(name)
  return example === undefined ? '' : `, for example ${name}='${example}'`
}

function quote(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const inner of Object.values(value)) {
    if (isPlain(inner)) deepFreeze(inner)
  }
  return Object.freeze(value)
}

/** KeyObjects stay as they are: they cannot be changed anyway. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Array.isArray(value)
}
