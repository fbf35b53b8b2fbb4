# Generated from Sql.g4 by ANTLR 4.13.2
from antlr4 import *
if "." in __name__:
    from .Sql import Sql
else:
    from Sql import Sql

# This class defines a complete generic visitor for a parse tree produced by Sql.

class SqlVisitor(ParseTreeVisitor):

    # Visit a parse tree produced by Sql#singleStatement.
    def visitSingleStatement(self, ctx:Sql.SingleStatementContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#statement.
    def visitStatement(self, ctx:Sql.StatementContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#select.
    def visitSelect(self, ctx:Sql.SelectContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#selectItem.
    def visitSelectItem(self, ctx:Sql.SelectItemContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#sources.
    def visitSources(self, ctx:Sql.SourcesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#into.
    def visitInto(self, ctx:Sql.IntoContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#target.
    def visitTarget(self, ctx:Sql.TargetContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#targetPath.
    def visitTargetPath(self, ctx:Sql.TargetPathContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#targetNode.
    def visitTargetNode(self, ctx:Sql.TargetNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dottedTarget.
    def visitDottedTarget(self, ctx:Sql.DottedTargetContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#clause.
    def visitClause(self, ctx:Sql.ClauseContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#grouping.
    def visitGrouping(self, ctx:Sql.GroupingContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#timeRange.
    def visitTimeRange(self, ctx:Sql.TimeRangeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#sortKey.
    def visitSortKey(self, ctx:Sql.SortKeyContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#rowCount.
    def visitRowCount(self, ctx:Sql.RowCountContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#expression.
    def visitExpression(self, ctx:Sql.ExpressionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#link.
    def visitLink(self, ctx:Sql.LinkContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#operand.
    def visitOperand(self, ctx:Sql.OperandContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#primary.
    def visitPrimary(self, ctx:Sql.PrimaryContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#caseExpression.
    def visitCaseExpression(self, ctx:Sql.CaseExpressionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#when.
    def visitWhen(self, ctx:Sql.WhenContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#reference.
    def visitReference(self, ctx:Sql.ReferenceContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#arguments.
    def visitArguments(self, ctx:Sql.ArgumentsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#expressionNode.
    def visitExpressionNode(self, ctx:Sql.ExpressionNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dottedNode.
    def visitDottedNode(self, ctx:Sql.DottedNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#path.
    def visitPath(self, ctx:Sql.PathContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#patternNode.
    def visitPatternNode(self, ctx:Sql.PatternNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#piece.
    def visitPiece(self, ctx:Sql.PieceContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#exactPath.
    def visitExactPath(self, ctx:Sql.ExactPathContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#insert.
    def visitInsert(self, ctx:Sql.InsertContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#insertColumn.
    def visitInsertColumn(self, ctx:Sql.InsertColumnContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#row.
    def visitRow(self, ctx:Sql.RowContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#constant.
    def visitConstant(self, ctx:Sql.ConstantContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#shift.
    def visitShift(self, ctx:Sql.ShiftContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#deleteData.
    def visitDeleteData(self, ctx:Sql.DeleteDataContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createDatabase.
    def visitCreateDatabase(self, ctx:Sql.CreateDatabaseContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createSeries.
    def visitCreateSeries(self, ctx:Sql.CreateSeriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createAligned.
    def visitCreateAligned(self, ctx:Sql.CreateAlignedContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#useTemplate.
    def visitUseTemplate(self, ctx:Sql.UseTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createTemplate.
    def visitCreateTemplate(self, ctx:Sql.CreateTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createUser.
    def visitCreateUser(self, ctx:Sql.CreateUserContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createRole.
    def visitCreateRole(self, ctx:Sql.CreateRoleContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createToken.
    def visitCreateToken(self, ctx:Sql.CreateTokenContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createContinuousQuery.
    def visitCreateContinuousQuery(self, ctx:Sql.CreateContinuousQueryContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createView.
    def visitCreateView(self, ctx:Sql.CreateViewContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createFunction.
    def visitCreateFunction(self, ctx:Sql.CreateFunctionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#createTrigger.
    def visitCreateTrigger(self, ctx:Sql.CreateTriggerContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#databaseWord.
    def visitDatabaseWord(self, ctx:Sql.DatabaseWordContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#templateWord.
    def visitTemplateWord(self, ctx:Sql.TemplateWordContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#seriesOptions.
    def visitSeriesOptions(self, ctx:Sql.SeriesOptionsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#typeName.
    def visitTypeName(self, ctx:Sql.TypeNameContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alignedColumn.
    def visitAlignedColumn(self, ctx:Sql.AlignedColumnContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#continuousQueryWord.
    def visitContinuousQueryWord(self, ctx:Sql.ContinuousQueryWordContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#elsewhere.
    def visitElsewhere(self, ctx:Sql.ElsewhereContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#viewTarget.
    def visitViewTarget(self, ctx:Sql.ViewTargetContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#viewName.
    def visitViewName(self, ctx:Sql.ViewNameContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#viewSources.
    def visitViewSources(self, ctx:Sql.ViewSourcesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#viewSource.
    def visitViewSource(self, ctx:Sql.ViewSourceContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#viewSuffix.
    def visitViewSuffix(self, ctx:Sql.ViewSuffixContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#continuousQueryOption.
    def visitContinuousQueryOption(self, ctx:Sql.ContinuousQueryOptionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#templateColumn.
    def visitTemplateColumn(self, ctx:Sql.TemplateColumnContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#labels.
    def visitLabels(self, ctx:Sql.LabelsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#pair.
    def visitPair(self, ctx:Sql.PairContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#key.
    def visitKey(self, ctx:Sql.KeyContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#value.
    def visitValue(self, ctx:Sql.ValueContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropDatabases.
    def visitDropDatabases(self, ctx:Sql.DropDatabasesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropSeries.
    def visitDropSeries(self, ctx:Sql.DropSeriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropTemplate.
    def visitDropTemplate(self, ctx:Sql.DropTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropSender.
    def visitDropSender(self, ctx:Sql.DropSenderContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropPrincipal.
    def visitDropPrincipal(self, ctx:Sql.DropPrincipalContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropToken.
    def visitDropToken(self, ctx:Sql.DropTokenContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropContinuousQuery.
    def visitDropContinuousQuery(self, ctx:Sql.DropContinuousQueryContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropViews.
    def visitDropViews(self, ctx:Sql.DropViewsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropFunction.
    def visitDropFunction(self, ctx:Sql.DropFunctionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dropTrigger.
    def visitDropTrigger(self, ctx:Sql.DropTriggerContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterSeries.
    def visitAlterSeries(self, ctx:Sql.AlterSeriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterStorage.
    def visitAlterStorage(self, ctx:Sql.AlterStorageContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterUser.
    def visitAlterUser(self, ctx:Sql.AlterUserContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterTemplate.
    def visitAlterTemplate(self, ctx:Sql.AlterTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterDatabase.
    def visitAlterDatabase(self, ctx:Sql.AlterDatabaseContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterView.
    def visitAlterView(self, ctx:Sql.AlterViewContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#renameView.
    def visitRenameView(self, ctx:Sql.RenameViewContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alterViewProperties.
    def visitAlterViewProperties(self, ctx:Sql.AlterViewPropertiesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#alteration.
    def visitAlteration(self, ctx:Sql.AlterationContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showDatabases.
    def visitShowDatabases(self, ctx:Sql.ShowDatabasesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showDevices.
    def visitShowDevices(self, ctx:Sql.ShowDevicesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showSeries.
    def visitShowSeries(self, ctx:Sql.ShowSeriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showViews.
    def visitShowViews(self, ctx:Sql.ShowViewsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showChildren.
    def visitShowChildren(self, ctx:Sql.ShowChildrenContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showQueries.
    def visitShowQueries(self, ctx:Sql.ShowQueriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showSlowQueries.
    def visitShowSlowQueries(self, ctx:Sql.ShowSlowQueriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showPlain.
    def visitShowPlain(self, ctx:Sql.ShowPlainContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showUrls.
    def visitShowUrls(self, ctx:Sql.ShowUrlsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showCurrentTimestamp.
    def visitShowCurrentTimestamp(self, ctx:Sql.ShowCurrentTimestampContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTimeZone.
    def visitShowTimeZone(self, ctx:Sql.ShowTimeZoneContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showSync.
    def visitShowSync(self, ctx:Sql.ShowSyncContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showCluster.
    def visitShowCluster(self, ctx:Sql.ShowClusterContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showRegions.
    def visitShowRegions(self, ctx:Sql.ShowRegionsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTtl.
    def visitShowTtl(self, ctx:Sql.ShowTtlContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showDiskUsage.
    def visitShowDiskUsage(self, ctx:Sql.ShowDiskUsageContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showStored.
    def visitShowStored(self, ctx:Sql.ShowStoredContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTemplates.
    def visitShowTemplates(self, ctx:Sql.ShowTemplatesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTemplateNodes.
    def visitShowTemplateNodes(self, ctx:Sql.ShowTemplateNodesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTemplatePaths.
    def visitShowTemplatePaths(self, ctx:Sql.ShowTemplatePathsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showContinuousQueries.
    def visitShowContinuousQueries(self, ctx:Sql.ShowContinuousQueriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showConfiguration.
    def visitShowConfiguration(self, ctx:Sql.ShowConfigurationContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showTokens.
    def visitShowTokens(self, ctx:Sql.ShowTokensContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#databasesWord.
    def visitDatabasesWord(self, ctx:Sql.DatabasesWordContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#showClause.
    def visitShowClause(self, ctx:Sql.ShowClauseContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#countDatabases.
    def visitCountDatabases(self, ctx:Sql.CountDatabasesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#countDevices.
    def visitCountDevices(self, ctx:Sql.CountDevicesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#countSeries.
    def visitCountSeries(self, ctx:Sql.CountSeriesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#countNodes.
    def visitCountNodes(self, ctx:Sql.CountNodesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setStorageGroup.
    def visitSetStorageGroup(self, ctx:Sql.SetStorageGroupContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setTimeZone.
    def visitSetTimeZone(self, ctx:Sql.SetTimeZoneContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setPartialResults.
    def visitSetPartialResults(self, ctx:Sql.SetPartialResultsContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setDialect.
    def visitSetDialect(self, ctx:Sql.SetDialectContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setTtl.
    def visitSetTtl(self, ctx:Sql.SetTtlContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setTemplate.
    def visitSetTemplate(self, ctx:Sql.SetTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setSystem.
    def visitSetSystem(self, ctx:Sql.SetSystemContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#setConfiguration.
    def visitSetConfiguration(self, ctx:Sql.SetConfigurationContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#zone.
    def visitZone(self, ctx:Sql.ZoneContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#unsetTtl.
    def visitUnsetTtl(self, ctx:Sql.UnsetTtlContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#unsetTemplate.
    def visitUnsetTemplate(self, ctx:Sql.UnsetTemplateContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#flush.
    def visitFlush(self, ctx:Sql.FlushContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#merge.
    def visitMerge(self, ctx:Sql.MergeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#clear.
    def visitClear(self, ctx:Sql.ClearContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#load.
    def visitLoad(self, ctx:Sql.LoadContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#loadConfiguration.
    def visitLoadConfiguration(self, ctx:Sql.LoadConfigurationContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#kill.
    def visitKill(self, ctx:Sql.KillContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#explain.
    def visitExplain(self, ctx:Sql.ExplainContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#grantRole.
    def visitGrantRole(self, ctx:Sql.GrantRoleContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#grantPrivileges.
    def visitGrantPrivileges(self, ctx:Sql.GrantPrivilegesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#revokeRole.
    def visitRevokeRole(self, ctx:Sql.RevokeRoleContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#revokePrivileges.
    def visitRevokePrivileges(self, ctx:Sql.RevokePrivilegesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#listUsers.
    def visitListUsers(self, ctx:Sql.ListUsersContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#listRoles.
    def visitListRoles(self, ctx:Sql.ListRolesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#listPrivileges.
    def visitListPrivileges(self, ctx:Sql.ListPrivilegesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#privileges.
    def visitPrivileges(self, ctx:Sql.PrivilegesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#principal.
    def visitPrincipal(self, ctx:Sql.PrincipalContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#password.
    def visitPassword(self, ctx:Sql.PasswordContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#admitNode.
    def visitAdmitNode(self, ctx:Sql.AdmitNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#changeNodes.
    def visitChangeNodes(self, ctx:Sql.ChangeNodesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#rebalance.
    def visitRebalance(self, ctx:Sql.RebalanceContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#migrateRegion.
    def visitMigrateRegion(self, ctx:Sql.MigrateRegionContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#abortChange.
    def visitAbortChange(self, ctx:Sql.AbortChangeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#giveUpNodes.
    def visitGiveUpNodes(self, ctx:Sql.GiveUpNodesContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#dismissNode.
    def visitDismissNode(self, ctx:Sql.DismissNodeContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#transfer.
    def visitTransfer(self, ctx:Sql.TransferContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#nodeName.
    def visitNodeName(self, ctx:Sql.NodeNameContext):
        return self.visitChildren(ctx)


    # Visit a parse tree produced by Sql#name.
    def visitName(self, ctx:Sql.NameContext):
        return self.visitChildren(ctx)



del Sql