import {
  type Finding,
  isNode,
  memberName,
  type Node,
  nameOf,
  type Rule,
  type SourceFile,
} from './source_tree.ts'

/** Only config reads the environment; cli.ts and the demo hand it over. */
export const readsEnvironmentInConfig: Rule = (tree) =>
  productionFiles(tree, /^service\/src\/(config\/|(cli|demo)\.ts$)/).flatMap((file) => [
    ...matching(file, (node) => memberName(node) === 'process.env', 'process.env is read by config/ only'),
    ...importing(
      file,
      /^(node:)?process$/,
      'process.env is read by config/ only: use the global process otherwise',
    ),
  ])

const timers = ['setTimeout', 'setInterval', 'setImmediate']
const clocks = ['Date.now', 'performance.now', 'process.hrtime', 'performance.timeOrigin']
const timeMessage = 'time comes from the Clock that is passed in (clock.ts)'

/** `new Date(atMs)` writes a given time in words and is fine; `new Date()` asks what time it is. */
export const takesTimeFromClock: Rule = (tree) =>
  productionFiles(tree, /^service\/src\/clock\.ts$/).flatMap((file) => [
    ...matching(file, tellsTime, timeMessage),
    ...importing(file, /^(node:)?(timers|timers\/promises|perf_hooks)$/, timeMessage),
  ])

function tellsTime(node: Node): boolean {
  if (clocks.includes(memberName(node) ?? '')) return true
  if (node.type === 'NewExpression') return nameOf(node.callee) === 'Date' && isEmpty(node.arguments)
  if (node.type !== 'CallExpression') return false
  const called = nameOf(node.callee) ?? memberName(node.callee)?.replace(/^globalThis\./, '')
  return called === 'Date' || timers.includes(called ?? '')
}

const moneyFolders = /^service\/src\/(domain|engine|chains|prices|signer)\//
const floats = ['Number', 'parseFloat', 'Number.parseFloat']

/** Floating point cannot hold money; counts and times go on the list of exceptions, with the reason. */
export const keepsMoneyOutOfFloats: Rule = (tree) =>
  tree
    .filter((file) => !file.isTest && moneyFolders.test(file.path))
    .flatMap((file) =>
      matching(
        file,
        (node) =>
          (node.type === 'CallExpression' &&
            floats.includes(nameOf(node.callee) ?? memberName(node.callee) ?? '')) ||
          (node.type === 'UnaryExpression' && node.operator === '+'),
        'makes a floating-point number, which cannot hold money: use bigint (domain/money)',
      ),
    )

/** A URL writes a space as `%20` and `é` as `%C3%A9`: its pathname names no file where the checkout lies under such a name. */
export const takesPathsFromFolders: Rule = (tree) =>
  tree.flatMap((file) =>
    matching(
      file,
      (node) =>
        node.type === 'MemberExpression' && nameOf(node.property) === 'pathname' && isOwnUrl(node.object),
      'the pathname of a URL is no path: use join(import.meta.dirname, …), or fileURLToPath',
    ),
  )

/** `new URL(…, import.meta.url)` */
function isOwnUrl(value: unknown): boolean {
  if (!isNode(value) || value.type !== 'NewExpression' || nameOf(value.callee) !== 'URL') return false
  const base: unknown = Array.isArray(value.arguments) ? value.arguments[1] : undefined
  return (
    isNode(base) &&
    isNode(base.object) &&
    base.object.type === 'MetaProperty' &&
    nameOf(base.property) === 'url'
  )
}

function productionFiles(tree: readonly SourceFile[], except: RegExp): readonly SourceFile[] {
  return tree.filter(({ path, isTest }) => !isTest && path.startsWith('service/src/') && !except.test(path))
}

function matching(file: SourceFile, isBad: (node: Node) => boolean, message: string): readonly Finding[] {
  return file.nodes.filter(isBad).map((node) => ({ path: file.path, line: file.lineAt(node.start), message }))
}

function importing(file: SourceFile, specifiers: RegExp, message: string): readonly Finding[] {
  return file.imports
    .filter(({ specifier }) => specifiers.test(specifier))
    .map(({ line }) => ({ path: file.path, line, message }))
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && !value.some(isNode)
}
