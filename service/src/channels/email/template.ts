import { escapeHtml } from '../../domain/html_text.ts'

/**
 * What a template may say of a value: its text, whether it is there, and what it holds. A list repeats its section.
 */
export type View = { readonly [name: string]: Value }
type Value = string | boolean | null | View | readonly View[]

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string }
  | { readonly kind: 'partial'; readonly name: string }
  | { readonly kind: 'section'; readonly name: string; readonly isInverted: boolean; readonly inner: Node[] }

export type Template = readonly Node[]

export type Kind = 'html' | 'text'

/**
 * Reads a template: of Mustache (https://mustache.github.io/mustache.5.html) values, sections, inverted sections and
 * partials. There is no way to put a value in without escaping it. Throws where a section does not end.
 */
export function parseTemplate(source: string): Template {
  if (/\{\{\{|\}\}\}/.test(source)) fail('{{{ is not understood: every value is escaped')
  // A line with nothing but the beginning or end of a section leaves no empty line behind.
  const tidy = source.replace(/^[ \t]*(\{\{[#^/>][^{}]*\}\})[ \t]*\n/gm, '$1')
  const open: { name: string; isInverted: boolean; inner: Node[] }[] = [
    { name: '', isInverted: false, inner: [] },
  ]
  for (const part of tidy.split(/(\{\{[^{}]*\}\})/)) {
    const [, sign = '', name = ''] = /^\{\{\s*([#^/>]?)\s*([a-z_]+)\s*\}\}$/.exec(part) ?? []
    const within = open.at(-1) ?? fail('a section ends that never began')
    if (name === '') {
      if (part.includes('{{')) fail(`${part} is not understood`)
      within.inner.push({ kind: 'text', text: part })
    } else if (sign === '#' || sign === '^') {
      open.push({ name, isInverted: sign === '^', inner: [] })
    } else if (sign === '/') {
      if (within.name !== name) fail(`{{/${name}}} ends {{#${within.name}}}`)
      open.pop()
      open.at(-1)?.inner.push({ kind: 'section', ...within })
    } else {
      within.inner.push({ kind: sign === '>' ? 'partial' : 'value', name })
    }
  }
  const [whole, ...unfinished] = open
  if (whole === undefined || unfinished.length > 0) fail(`{{#${unfinished[0]?.name}}} does not end`)
  return whole.inner
}

/** Fills a template in. Throws on a name that is nowhere: a slip of the pen must not become an empty mail. */
export function fillTemplate(
  template: Template,
  kind: Kind,
  view: View,
  partials: Readonly<Record<string, Template>>,
): string {
  return fill(template, [view])

  function fill(nodes: Template, scopes: readonly View[]): string {
    return nodes.map((node) => fillNode(node, scopes)).join('')
  }

  function fillNode(node: Node, scopes: readonly View[]): string {
    switch (node.kind) {
      case 'text':
        return node.text
      case 'partial':
        return fill(partials[node.name] ?? fail(`there is no partial ${node.name}`), scopes)
      case 'value': {
        const value = find(scopes, node.name)
        if (typeof value !== 'string') fail(`${node.name} is no text`)
        return kind === 'html' ? escapeHtml(oneLine(value)) : oneLine(value)
      }
      case 'section': {
        const value = find(scopes, node.name)
        const isThere = Array.isArray(value) ? value.length > 0 : value !== null && value !== false
        if (node.isInverted) return isThere ? '' : fill(node.inner, scopes)
        if (!isThere) return ''
        const inside: readonly View[] = Array.isArray(value) ? value : [asView(value as Value)]
        return inside.map((each) => fill(node.inner, [each, ...scopes])).join('')
      }
    }
  }
}

function asView(value: Value): View {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as View) : {}
}

function find(scopes: readonly View[], name: string): Value {
  const scope = scopes.find((each) => Object.hasOwn(each, name))
  return scope?.[name] ?? (scope === undefined ? fail(`there is no ${name}`) : null)
}

/** A value that brings its own lines could pretend to be ours; one that turns the direction of writing could as well. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ')
}

function fail(message: string): never {
  throw new Error(`a mail's template: ${message}`)
}
