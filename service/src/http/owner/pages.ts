import { createHash } from 'node:crypto'
import type { RouteOptions } from 'fastify'
import type { HeaderList } from '../answers/answers.ts'
import { admitAnonymous, type RouteContext } from '../route_context.ts'

/**
 * What links in mails open. The token stands behind a `#`, which browsers keep to themselves: it is in no log, no
 * Referer, and nothing that only opens the link (a mail scanner does) sends it anywhere. A button does.
 */
type Page = {
  readonly title: string
  readonly text: string
  readonly buttons: readonly Button[]
}

type Button = {
  readonly label: string
  readonly path: string
  readonly done: string
  /** Said in place of `done`, and the new address after it, when with this both addresses have agreed. */
  readonly changed?: string
}

const pages: Readonly<Record<string, Page>> = {
  '/account/sign-in': {
    title: 'Sign in',
    text: 'Go on to sign in to your account in this browser.',
    buttons: [{ label: 'Sign in', path: '/account/session', done: 'You are signed in.' }],
  },
  '/account/confirm-email': {
    title: 'Change of your email address',
    text: 'The mails of an account are to go to another address, and this link came to the old or the new one. It is changed when both have agreed.',
    buttons: [
      {
        label: 'I agree',
        path: '/account/email/agree',
        done: 'You have agreed. The other address has to agree as well.',
        changed: 'It is changed: sign in with',
      },
      { label: 'Stop it', path: '/account/email/stop', done: 'The change was stopped.' },
    ],
  },
}

/**
 * Buttons are disabled while one waits: pressed twice, the second answer would say that the link was used. Some browsers keep them so
 * when a page is loaded again. A newer link that is opened in the same tab differs behind the `#` only, which loads nothing by itself.
 */
const script = `
const say = (text) => { document.querySelector('output').textContent = text }
const token = new URLSearchParams(location.hash.slice(1)).get('token')
history.replaceState(null, '', location.pathname)
addEventListener('hashchange', () => location.reload())
if (token === null) say('This link is not whole: open it as it stands in the mail.')
const buttons = document.querySelectorAll('button')
const disable = (isDisabled) => { for (const each of buttons) each.disabled = isDisabled }
disable(false)
for (const button of buttons) {
  button.hidden = token === null
  button.addEventListener('click', async () => {
    disable(true)
    const answer = await fetch(button.dataset.path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    }).then((response) => response.json()).catch(() => null)
    if (answer?.success) {
      const { done, changed } = button.dataset
      say(answer.data?.is_changed ? changed + ' ' + answer.data.new_email + '.' : done)
      for (const each of buttons) each.hidden = true
    } else {
      say(answer?.message ?? 'There was no answer. Try again.')
      disable(false)
    }
  })
}
`
const style = `
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
button { font: inherit; padding: .5rem 1rem; margin-right: .5rem }
`

function sourceOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

const headers: HeaderList = [
  'Content-Type',
  'text/html; charset=utf-8',
  'Cache-Control',
  'no-store',
  'Referrer-Policy',
  'no-referrer',
  'X-Frame-Options',
  'DENY',
  'Content-Security-Policy',
  `default-src 'none'; script-src ${sourceOf(script)}; style-src ${sourceOf(style)}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
]

function render({ title, text, buttons }: Page): string {
  const shown = buttons.map(
    ({ label, path, done, changed = '' }) =>
      `<button type="button" hidden data-path="${path}" data-done="${done}" data-changed="${changed}">${label}</button>`,
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${style}</style>
<h1>${title}</h1>
<p>${text}</p>
<noscript><p>This page needs JavaScript, so that nothing but you can press its button.</p></noscript>
<p>${shown.join('\n')}</p>
<p><output></output></p>
<script>${script}</script>
</html>
`
}

export const pageRoutes = Object.entries(pages).map(
  ([url, page]) =>
    (context: RouteContext): RouteOptions => {
      const html = render(page)
      return {
        method: 'GET',
        url,
        schema: { hide: true },
        handler(request, reply) {
          if (admitAnonymous(context, request, reply)) context.answers.raw(request, reply, 200, html, headers)
        },
      }
    },
)
