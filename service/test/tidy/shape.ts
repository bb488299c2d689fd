import { isNode, type Node, nameOf, type Rule, type SourceFile } from './source_tree.ts'

const LINES_MAX = 70

const functionTypes = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']

/** What fits on a screen can be understood at once. A `describe` is a chapter, not a function. */
export const keepsFunctionsShort: Rule = (tree) =>
  tree.flatMap((file) => {
    const chapters = file.nodes
      .filter(isDescribe)
      .flatMap((call) => (call.arguments as readonly unknown[]) ?? [])
    return file.nodes
      .filter((node) => functionTypes.includes(node.type) && !chapters.includes(node))
      .map((node) => ({ line: file.lineAt(node.start), lines: lineCount(file, node) }))
      .filter(({ lines }) => lines > LINES_MAX)
      .map(({ line, lines }) => ({
        path: file.path,
        line,
        message: `a function of ${lines} lines; at most ${LINES_MAX}`,
      }))
  })

/** `describe(…)`, `describe.each(…)(…)` and the like. */
function isDescribe(node: Node): boolean {
  let callee: unknown = node.type === 'CallExpression' ? node.callee : undefined
  while (isNode(callee) && nameOf(callee) === undefined) callee = callee.callee ?? callee.object
  return nameOf(callee) === 'describe'
}

function lineCount(file: SourceFile, node: Node): number {
  return file.lineAt(node.end - 1) - file.lineAt(node.start) + 1
}

const snakeCase = /^[a-z0-9]+(_[a-z0-9]+)*(\.(test|prove|bench|config|d))?\.tsx?$/

export const namesFilesInSnakeCase: Rule = (tree) =>
  tree
    .filter(({ path }) => {
      const parts = path.split('/')
      const isFolderWrong = parts.slice(0, -1).some((folder) => !/^[a-z0-9]+(_[a-z0-9]+)*$/.test(folder))
      return isFolderWrong || !snakeCase.test(parts.at(-1) ?? '')
    })
    .map(({ path }) => ({ path, line: 1, message: 'files and folders are named in snake_case' }))

const emptyWord = /(^|_)(manager|helpers?|service|utils?|common)(_|\.|$)/
// The whole is called Service; a part of it is not.
const emptyTypeName = /.(Manager|Helpers?|Service|Utils?|Common)$/
const emptyFunctionName = /(Manager|Helpers?|Utils?|Common)$/
const types = ['ClassDeclaration', 'TSTypeAliasDeclaration', 'TSInterfaceDeclaration']

/** Words that fit everything say nothing (ARCHITECTURE.md). */
export const usesTellingNames: Rule = (tree) =>
  tree.flatMap((file) => {
    const inWorkspace = file.path.split('/').slice(1)
    const wrongPath = inWorkspace.some((part) => emptyWord.test(part))
      ? [{ path: file.path, line: 1, message: 'this file name says nothing: name what it answers' }]
      : []
    const wrongNames = file.nodes.filter(saysNothing).map((node) => ({
      path: file.path,
      line: file.lineAt(node.start),
      message: `${nameOf(node.id)} says nothing: name what it does`,
    }))
    return [...wrongPath, ...wrongNames]
  })

function saysNothing(node: Node): boolean {
  const name = nameOf(node.id) ?? ''
  if (types.includes(node.type)) return emptyTypeName.test(name)
  return node.type === 'FunctionDeclaration' && emptyFunctionName.test(name)
}
