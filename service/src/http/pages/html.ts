import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { escapeHtml } from '../../domain/html_text.ts'
import type { Answers, HeaderList } from '../answers/answers.ts'

/** Markup of ours; what was put into it is escaped. */
export type Html = { readonly markup: string }

type Part = string | Html | readonly Html[]

/** Text becomes text, whatever is in it; only markup that was made here stays markup. */
export function html(parts: TemplateStringsArray, ...values: readonly Part[]): Html {
  const markup = parts.reduce((whole, part, index) => {
    const value = values[index - 1]
    return `${whole}${value === undefined ? '' : markupOf(value)}${part}`
  })
  return { markup }
}

function markupOf(value: Part): string {
  if (typeof value === 'string') return escapeHtml(value)
  return 'markup' in value ? value.markup : value.map(({ markup }) => markup).join('')
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; line-height: 1.3 }
h2 { font-size: 1.15rem; margin: 1.5rem 0 .25rem }
dl { display: grid; grid-template-columns: minmax(7rem, auto) 1fr; gap: .35rem 1rem }
dt { opacity: .7 }
dd { margin: 0 }
dd, p { overflow-wrap: anywhere }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere }
button { font: inherit; padding: .5rem 1rem; border-radius: 6px; border: 1px solid #24467d; background: #24467d; color: #fff; cursor: pointer }
form { margin: .75rem 0 }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid #8884; vertical-align: top; overflow-wrap: anywhere }
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** Nothing is loaded, nothing runs, nobody frames it, and its address (which may hold a token) is told nobody. */
const PAGE_HEADERS: HeaderList = [
  'Content-Type',
  'text/html; charset=utf-8',
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'X-Frame-Options',
  'DENY',
  'Referrer-Policy',
  'no-referrer',
  'X-Robots-Tag',
  'noindex',
]

/** A whole page without scripts, that works in any browser. */
export function answerPage(
  answers: Answers,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  page: { readonly title: string; readonly body: Html },
): void {
  const { markup } = html`<title>${page.title}</title>`
  const whole = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${markup}
<style>${STYLE}</style>
</head>
<body>
${page.body.markup}
</body>
</html>
`
  answers.raw(request, reply, status, whole, PAGE_HEADERS)
}
