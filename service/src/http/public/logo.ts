import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { RouteOptions } from 'fastify'
import { anyOrigin } from '../answers/answers.ts'
import { invalidParameters } from '../errors.ts'
import { readQuery } from '../parameters/read_query.ts'
import { parameterOf, queryOf, type RouteContext } from '../route_context.ts'
import { isUnchanged } from './conditional.ts'

/** cryptocurrency-icons, CC0: https://github.com/spothq/cryptocurrency-icons */
const require = createRequire(import.meta.url)
const folder = join(dirname(require.resolve('cryptocurrency-icons/package.json')), 'svg', 'color')

type Logo = { readonly body: Buffer; readonly etag: string }

/** The set changes with a release at most. */
const CACHING = ['Cache-Control', 'public, max-age=604800']
/** An SVG opened by itself is a document: it may draw and nothing else. */
const SVG_HEADERS = [
  'Content-Type',
  'image/svg+xml; charset=utf-8',
  'Content-Security-Policy',
  "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'Cross-Origin-Resource-Policy',
  'cross-origin',
]

export function logoRoute({ answers }: RouteContext): RouteOptions {
  const names = new Set(readdirSync(folder))
  const loaded = new Map<string, Logo>()
  const load = async (name: string): Promise<Logo> => {
    const known = loaded.get(name)
    if (known !== undefined) return known
    const body = await readFile(join(folder, name))
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
    const logo = { body, etag }
    loaded.set(name, logo)
    return logo
  }
  return {
    method: 'GET',
    url: '/logos/:file',
    schema: { hide: true },
    async handler(request, reply) {
      const read = readQuery({}, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const file = parameterOf(request, 'file')
      const name = /^[A-Z0-9]{1,20}\.svg$/.test(file) ? file.toLowerCase() : ''
      if (!names.has(name)) {
        return answers.problem(request, reply, { code: 'NOT_FOUND', message: 'there is no such logo' })
      }
      const { body, etag } = await load(name)
      const headers = [...SVG_HEADERS, ...CACHING, 'ETag', etag, ...anyOrigin]
      if (isUnchanged(request.headers['if-none-match'], etag)) {
        return answers.raw(request, reply, 304, '', headers)
      }
      answers.raw(request, reply, 200, body, headers)
    },
  }
}
