/*
 * The syntax of Saros' SQL (the dialect of IoTDB's tree model). Nearly every parser decision needs one token:
 *
 * - An expression is a flat chain of operands and operators. The builder applies precedence (a few lines of precedence
 *   climbing); a rule per level would cost seven rule calls for every operand.
 * - The clauses after FROM are a loop over clauses with different first words; the builder refuses repeated clauses.
 */
parser grammar Sql;

options { tokenVocab = SqlLexer; }

singleStatement: statement SEMICOLON? EOF;

statement
    : select
    | insert
    | deleteData
    | create
    | drop
    | alter
    | show
    | count
    | set
    | unset
    | flush
    | merge
    | clear
    | load
    | loadConfiguration
    | kill
    | explain
    | grant
    | revoke
    | list
    | changeCluster
    | transfer
    ;

// ---------------------------------------------------------------------------------------------- SELECT

select
    : SELECT LAST? items+=selectItem (COMMA items+=selectItem)* into? sources? clauses+=clause*
    ;

selectItem: expression (AS (alias=name | header=STRING))?;

sources: FROM (path (COMMA path)* | INFORMATION_SCHEMA DOT table=name);

into: INTO target (COMMA target)*;

target: ALIGNED? targetPath LEFT_PARENTHESIS measurements+=targetNode (COMMA measurements+=targetNode)* RIGHT_PARENTHESIS
    ;

targetPath: (ROOT DOT nodes+=dottedTarget | first=targetNode) (DOT nodes+=dottedTarget)*;

targetNode: TARGET_NAME | DOUBLE_COLON | name;

dottedTarget: TARGET_NAME | DOUBLE_COLON | nodeName;

clause
    : WHERE condition=expression
    | GROUP BY groupings+=grouping (COMMA groupings+=grouping)*
    | HAVING having=expression
    | FILL LEFT_PARENTHESIS fill=expression (COMMA bound=DURATION)? RIGHT_PARENTHESIS
    | ORDER BY keys+=sortKey (COMMA keys+=sortKey)*
    | kind=(LIMIT | OFFSET | SLIMIT | SOFFSET) amount=rowCount
    | ALIGN BY (DEVICE | TIME)
    | WITHOUT NULL kind=(ANY | ALL) (LEFT_PARENTHESIS columns+=expression (COMMA columns+=expression)* RIGHT_PARENTHESIS)?
    ;

grouping
    : TIME? LEFT_PARENTHESIS (timeRange COMMA)? interval=DURATION (COMMA step=DURATION)? RIGHT_PARENTHESIS
    | LEVEL EQUAL levels+=INTEGER (COMMA levels+=INTEGER)*
    | kind=name LEFT_PARENTHESIS controls+=expression (COMMA controls+=expression)* RIGHT_PARENTHESIS
    ;

timeRange
    : LEFT_BRACKET begin=expression COMMA until=expression RIGHT_PARENTHESIS
    | LEFT_PARENTHESIS begin=expression COMMA until=expression RIGHT_BRACKET
    ;

sortKey: expression direction=(ASC | DESC)? (NULLS place=(FIRST | LAST))?;

rowCount: INTEGER | PARAMETER;

// ---------------------------------------------------------------------------------------------- expressions

expression: operand link*;

link
    : operator=(EQUAL | NOT_EQUAL | LESS | LESS_EQUAL | GREATER | GREATER_EQUAL | PLUS | MINUS | STAR | SLASH | PERCENT
               | AND | AMPERSAND | OR | BAR) operand
    | NOT? operator=(IN | CONTAINS) LEFT_PARENTHESIS items+=expression (COMMA items+=expression)* RIGHT_PARENTHESIS
    | NOT? operator=(LIKE | REGEXP | BETWEEN | CONTAINS) operand (ESCAPE escape=STRING)?
    | operator=IS NOT? NULL
    ;

operand: prefixes+=(MINUS | PLUS | BANG | NOT)* primary;

primary
    : caseExpression
    | reference
    | time=(TIME | TIMESTAMP)
    | number=(INTEGER | DECIMAL)
    | point=DOT number=(INTEGER | DECIMAL)
    | literal=(STRING | DATETIME | BLOB)
    | PARAMETER
    | LEFT_PARENTHESIS inner=expression RIGHT_PARENTHESIS
    ;

caseExpression
    : CASE (whens+=when)+ (ELSE otherwise=expression)? END
    | CASE subject=expression (whens+=when)+ (ELSE otherwise=expression)? END
    ;

when: WHEN condition=expression THEN result=expression;

reference
    : function=name LEFT_PARENTHESIS arguments? RIGHT_PARENTHESIS
    | ROOT (DOT nodes+=dottedNode)+
    | first=expressionNode (DOT nodes+=dottedNode)*
    ;

arguments
    : values+=expression (COMMA values+=expression)*
    | values+=expression AS typeName
    | values+=expression FROM begin=INTEGER (FOR length=INTEGER)?
    ;

// `s1*2` is a product: a trailing star belongs to the node only where a product is not possible.
expressionNode: DOUBLE_STAR | STAR | name STAR?? | STAR name STAR??;

dottedNode: DOUBLE_STAR | STAR | nodeName STAR?? | STAR nodeName STAR??;

// ---------------------------------------------------------------------------------------------- paths

path: ROOT (DOT nodes+=patternNode)*;

patternNode: DOUBLE_STAR | STAR | piece (STAR piece)* STAR?? | STAR piece (STAR piece)* STAR??;

piece: nodeName | INTEGER;

// A path without wildcards.
exactPath: ROOT (DOT nodes+=nodeName)*;

// ---------------------------------------------------------------------------------------------- writing

insert
    : INSERT INTO exactPath LEFT_PARENTHESIS columns+=insertColumn (COMMA columns+=insertColumn)* RIGHT_PARENTHESIS
      ALIGNED? VALUES rows+=row (COMMA rows+=row)*
    ;

insertColumn: TIME | TIMESTAMP | name;

row: LEFT_PARENTHESIS cells+=constant (COMMA cells+=constant)* RIGHT_PARENTHESIS;

constant
    : sign=(PLUS | MINUS)? number=(INTEGER | DECIMAL)
    | sign=(PLUS | MINUS)? point=DOT number=(INTEGER | DECIMAL)
    | literal=(STRING | BLOB)
    | DATETIME shift*
    | sign=(PLUS | MINUS)? name (LEFT_PARENTHESIS RIGHT_PARENTHESIS shift*)?
    | PARAMETER
    ;

shift: sign=(PLUS | MINUS) DURATION;

deleteData: DELETE FROM path (COMMA path)* (WHERE expression)?;

// ---------------------------------------------------------------------------------------------- schema

create
    : CREATE databaseWord exactPath (WITH pair (COMMA? pair)*)?                         # createDatabase
    | CREATE TIMESERIES exactPath (LEFT_PARENTHESIS alias=name RIGHT_PARENTHESIS)? seriesOptions  # createSeries
    | CREATE ALIGNED TIMESERIES exactPath LEFT_PARENTHESIS alignedColumn (COMMA alignedColumn)* RIGHT_PARENTHESIS
                                                                                      # createAligned
    | CREATE TIMESERIES (OF | USING) templateWord ON path                              # useTemplate
    | CREATE templateWord name ALIGNED? (LEFT_PARENTHESIS templateColumn (COMMA templateColumn)* RIGHT_PARENTHESIS)?
                                                                                      # createTemplate
    | CREATE USER principal password                                                   # createUser
    | CREATE ROLE principal                                                            # createRole
    | CREATE TOKEN id=principal (FOR USER user=principal)?
      (EXPIRES (at=(STRING | DATETIME) | IN span=DURATION))?                            # createToken
    | CREATE continuousQueryWord id=name options+=continuousQueryOption* select END     # createContinuousQuery
    | CREATE LOGICAL? VIEW viewTarget (COMMA viewTarget)* AS viewSources                # createView
    | CREATE FUNCTION id=name AS entry=STRING elsewhere?                                # createFunction
    | CREATE (STATELESS | STATEFUL)? TRIGGER id=name event=(BEFORE | AFTER) INSERT ON path AS entry=STRING
      elsewhere? (WITH LEFT_PARENTHESIS pair (COMMA pair)* RIGHT_PARENTHESIS)?           # createTrigger
    ;

databaseWord: DATABASE | DATABASES | STORAGE GROUP;

templateWord: (DEVICE | SCHEMA) TEMPLATE;

seriesOptions: WITH? first=typeName (EQUAL value)? (COMMA? pair)* labels*;

typeName: name | TIMESTAMP;

alignedColumn: measurement=name (LEFT_PARENTHESIS alias=name RIGHT_PARENTHESIS)? seriesOptions;

continuousQueryWord: CONTINUOUS QUERY | CQ;

// USING URI 'https://...': the builder refuses it.
elsewhere: USING name STRING;

viewTarget
    : targetPath (LEFT_PARENTHESIS names+=viewName (COMMA names+=viewName)* RIGHT_PARENTHESIS)?
    ;

viewName: first=targetNode (DOT nodes+=dottedTarget)*;

viewSources
    : viewSource (COMMA viewSource)*
    | select
    | LEFT_PARENTHESIS select RIGHT_PARENTHESIS
    ;

viewSource: exactPath (LEFT_PARENTHESIS names+=viewSuffix (COMMA names+=viewSuffix)* RIGHT_PARENTHESIS)?;

viewSuffix: first=name (DOT nodes+=nodeName)*;

// RESAMPLE EVERY d BOUNDARY t RANGE d, d TIMEOUT POLICY word BEGIN: the builder checks the words.
continuousQueryOption: NAME | DURATION | DATETIME | INTEGER | COMMA;

templateColumn: measurement=name seriesOptions;

labels: kind=(TAGS | ATTRIBUTES) LEFT_PARENTHESIS pair (COMMA pair)* RIGHT_PARENTHESIS;

pair: key EQUAL value;

key: name | STRING;

value: STRING | (PLUS | MINUS)? (INTEGER | DECIMAL) | DATETIME | typeName;

drop
    : (DELETE | DROP) databaseWord path (COMMA path)*                                  # dropDatabases
    | (DELETE | DROP) TIMESERIES path (COMMA path)*                                    # dropSeries
    | (DELETE | DROP | DEACTIVATE) (TIMESERIES OF)? templateWord name? (FROM path (COMMA path)*)?     # dropTemplate
    | (DELETE | DROP) SENDER id=STRING                                                 # dropSender
    | (DELETE | DROP) kind=(USER | ROLE) principal                                     # dropPrincipal
    | (DELETE | DROP) TOKEN id=principal (OF USER user=principal)?                     # dropToken
    | (DELETE | DROP) continuousQueryWord id=name                                        # dropContinuousQuery
    | (DELETE | DROP) LOGICAL? VIEW path (COMMA path)*                                  # dropViews
    | (DELETE | DROP) FUNCTION id=name                                                 # dropFunction
    | (DELETE | DROP) TRIGGER id=name                                                  # dropTrigger
    ;

alter
    : ALTER TIMESERIES exactPath alteration                                            # alterSeries
    | ALTER TIMESERIES (IF EXISTS)? path (COMMA path)* SET STORAGE_PROPERTIES pair (COMMA pair)*   # alterStorage
    | ALTER USER principal SET PASSWORD password                                       # alterUser
    | ALTER templateWord id=name ADD LEFT_PARENTHESIS templateColumn (COMMA templateColumn)* RIGHT_PARENTHESIS   # alterTemplate
    | ALTER databaseWord exactPath WITH pair (COMMA? pair)*                             # alterDatabase
    | ALTER LOGICAL? VIEW viewTarget (COMMA viewTarget)* AS viewSources                 # alterView
    | ALTER LOGICAL? VIEW exactPath RENAME TO exactPath                                # renameView
    | ALTER LOGICAL? VIEW exactPath alteration                                         # alterViewProperties
    ;

alteration
    : RENAME old=key TO new=key
    | SET DATA TYPE wanted=typeName
    | SET pair (COMMA pair)*
    | DROP key (COMMA key)*
    | ADD kind=(TAGS | ATTRIBUTES) pair (COMMA pair)*
    | UPSERT (ALIAS EQUAL alias=key)? labels*
    ;

// ---------------------------------------------------------------------------------------------- SHOW and COUNT

show
    : SHOW databasesWord DETAILS? path?                                                # showDatabases
    | SHOW DEVICES path? (WITH databaseWord)? showClause*                              # showDevices
    | SHOW LATEST? TIMESERIES path? showClause*                                        # showSeries
    | SHOW LOGICAL? VIEW path? showClause*                                             # showViews
    | SHOW CHILD what=(PATHS | NODES) path? showClause*                                # showChildren
    | SHOW (QUERIES | QUERY PROCESSLIST) showClause*                                   # showQueries
    | SHOW SLOW QUERIES showClause*                                                    # showSlowQueries
    | SHOW what=(VERSION | VARIABLES | FUNCTIONS | TRIGGERS | CURRENT_TIMESTAMP | CURRENT_USER
                | CURRENT_SQL_DIALECT | DATANODES | CONFIGNODES | CLUSTERID)           # showPlain
    | SHOW AVAILABLE URLS                                                              # showUrls
    | SHOW CURRENT TIMESTAMP                                                           # showCurrentTimestamp
    | SHOW (TIME ZONE | TIME_ZONE)                                                     # showTimeZone
    | SHOW what=(SENDERS | RECEIVERS | SYNC)                                           # showSync
    | SHOW CLUSTER (DETAILS | CHANGE)?                                                 # showCluster
    | SHOW what=(DATA | SCHEMA)? REGIONS (OF databaseWord? path (COMMA path)*)?
      (ON NODEID nodeIds+=INTEGER (COMMA nodeIds+=INTEGER)*)?                           # showRegions
    | SHOW (ALL TTL | TTL ON path (COMMA path)*)                                         # showTtl
    | SHOW DISK_USAGE FROM path showClause*                                             # showDiskUsage
    | SHOW what=(PARTITIONS | FILES) (OF databaseWord? path (COMMA path)*)?            # showStored
    | SHOW (DEVICE | SCHEMA)? TEMPLATES                                                # showTemplates
    | SHOW NODES (IN | ON) templateWord id=name                                        # showTemplateNodes
    | SHOW PATHS path? (SET | USING) templateWord id=name                                # showTemplatePaths
    | SHOW (CONTINUOUS QUERIES | CQS)                                                  # showContinuousQueries
    | SHOW CONFIGURATION (ON node=INTEGER)? (WITH DESC)?                               # showConfiguration
    | SHOW TOKENS (OF USER user=principal)?                                            # showTokens
    ;

databasesWord: DATABASES | DATABASE | STORAGE GROUP;

showClause
    : WHERE condition=expression
    | ORDER BY keys+=sortKey (COMMA keys+=sortKey)*
    | kind=(LIMIT | OFFSET) amount=rowCount
    ;

count
    : COUNT databasesWord path?                                                        # countDatabases
    | COUNT DEVICES path? (WHERE expression)?                                          # countDevices
    | COUNT TIMESERIES path? (WHERE expression)? (GROUP BY LEVEL EQUAL level=INTEGER)?  # countSeries
    | COUNT NODES path LEVEL EQUAL level=INTEGER                                       # countNodes
    ;

// ---------------------------------------------------------------------------------------------- administration

set
    : SET STORAGE GROUP TO exactPath (WITH pair (COMMA? pair)*)?                        # setStorageGroup
    | SET (TIME ZONE | TIME_ZONE) (TO | EQUAL)? zone                                   # setTimeZone
    | SET ALLOW PARTIAL RESULTS switch=name                                            # setPartialResults
    | SET SQL_DIALECT EQUAL dialect=name                                               # setDialect
    | SET TTL TO path (milliseconds=INTEGER | infinite=name)                           # setTtl
    | SET templateWord id=name TO exactPath                                              # setTemplate
    | SET SYSTEM TO status=name (ON (LOCAL | CLUSTER))?                                # setSystem
    | SET CONFIGURATION pair (COMMA? pair)* (ON node=INTEGER)?                           # setConfiguration
    ;

zone: STRING | name (SLASH name)* | sign=(PLUS | MINUS) INTEGER (COLON INTEGER)?;

unset
    : UNSET TTL (FROM | TO) path                                                       # unsetTtl
    | UNSET templateWord id=name FROM exactPath                                          # unsetTemplate
    ;

flush: FLUSH (path (COMMA path)*)? name? (ON (LOCAL | CLUSTER))?;

merge: FULL? MERGE (path (COMMA path)*)? (ON (LOCAL | CLUSTER))?;

clear: CLEAR what=name? CACHE (ON (LOCAL | CLUSTER))?;

load
    : LOAD source=STRING (pair (COMMA? pair)* | WITH LEFT_PARENTHESIS pair (COMMA pair)* RIGHT_PARENTHESIS)?
    ;

loadConfiguration: LOAD CONFIGURATION (ON (LOCAL | CLUSTER))?;

kill: KILL (QUERY id=(STRING | INTEGER | NAME) | ALL QUERIES);

explain: EXPLAIN (ANALYZE VERBOSE??)?? statement;

// ---------------------------------------------------------------------------------------------- users

grant
    : GRANT ROLE role=principal TO user=principal                                      # grantRole
    | GRANT privileges ON path (COMMA path)* TO kind=(USER | ROLE) principal (WITH GRANT OPTION)?      # grantPrivileges
    ;

revoke
    : REVOKE ROLE role=principal FROM user=principal                                   # revokeRole
    | REVOKE privileges ON path (COMMA path)* FROM kind=(USER | ROLE) principal        # revokePrivileges
    ;

list
    : LIST USER (OF ROLE role=principal)?                                              # listUsers
    | LIST ROLE (OF USER user=principal)?                                              # listRoles
    | LIST PRIVILEGES OF kind=(USER | ROLE) principal                                  # listPrivileges
    ;

privileges: names+=(NAME | ALL | SYSTEM) (COMMA names+=(NAME | ALL | SYSTEM))*;

principal: name | ROOT;

password: STRING | PARAMETER;

// ---------------------------------------------------------------------------------------------- cluster membership

changeCluster
    : ADMIT NODE peer=STRING CLIENT client=STRING (RACK rack=STRING)? (AS token=STRING)?  # admitNode
    | ADD NODE joining+=INTEGER (COMMA joining+=INTEGER)*                              # changeNodes
    | REMOVE (NODE | DATANODE) leaving+=INTEGER (COMMA leaving+=INTEGER)*              # changeNodes
    | REPLACE NODE leaving+=INTEGER WITH joining+=INTEGER                              # changeNodes
    | REBALANCE CLUSTER (BY measure=name)?                                             # rebalance
    | MIGRATE REGION region=INTEGER FROM leaving=INTEGER TO joining=INTEGER           # migrateRegion
    | ABORT CHANGE                                                                     # abortChange
    | GIVE UP NODE ids+=INTEGER (COMMA ids+=INTEGER)*                                  # giveUpNodes
    | DISMISS NODE id=INTEGER                                                          # dismissNode
    ;

// ---------------------------------------------------------------------------------------------- sync

transfer: TRANSFER DEVICE exactPath TO SENDER id=STRING;

// ---------------------------------------------------------------------------------------------- names

// After a dot, every keyword is a name.
nodeName: name | ROOT | TIME | TIMESTAMP;

// Every keyword except ROOT, TIME and TIMESTAMP may be a name (a test compares this list with the lexer's).
name
    : NAME | DURATION | QUOTED_NAME
    | ABORT | ADD | ADMIT | AFTER | ALIAS | ALIGN | ALIGNED | ALL | ALLOW | ALTER | ANALYZE | AND | ANY | AS | ASC
      | ATTRIBUTES | AVAILABLE | BEFORE | BETWEEN | BY | CACHE | CASE | CHANGE | CHILD | CLEAR | CLIENT | CLUSTER | CLUSTERID
      | CONFIGNODES | CONFIGURATION | CONTAINS | CONTINUOUS | COUNT | CQ | CQS | CREATE | CURRENT | CURRENT_SQL_DIALECT
      | CURRENT_TIMESTAMP | CURRENT_USER | DATA | DATABASE | DATABASES | DATANODE | DATANODES | DEACTIVATE | DELETE
      | DESC | DETAILS | DEVICE | DEVICES
      | DISK_USAGE | DISMISS | DROP | ELSE | END | ESCAPE | EXISTS | EXPIRES | EXPLAIN | FILES | FILL | FIRST | FLUSH | FOR | FROM | FULL | FUNCTION
      | FUNCTIONS | GIVE | GRANT | GROUP | HAVING | IF | IN | INFORMATION_SCHEMA | INSERT | INTO | IS | KILL | LAST
      | LATEST | LEVEL | LIKE | LIMIT | LIST | LOAD | LOCAL | LOGICAL | MERGE | MIGRATE | NODE | NODEID
      | NODES | NOT | NULL | NULLS | OF | OFFSET | ON | OPTION | OR | ORDER | PARTIAL | PARTITIONS | PASSWORD
      | PATHS | PRIVILEGES
      | PROCESSLIST | QUERIES | QUERY | RACK | REBALANCE | RECEIVERS | REGEXP | REGION | REGIONS
      | REMOVE | RENAME | REPLACE | RESULTS | REVOKE | ROLE | SCHEMA | SELECT | SENDER | SENDERS | SET | SHOW | SLIMIT | SLOW | SOFFSET
      | SQL_DIALECT | STATEFUL | STATELESS | STORAGE | STORAGE_PROPERTIES | SYNC | SYSTEM | TAGS | TEMPLATE | TEMPLATES
      | THEN | TIMESERIES | TIME_ZONE | TO | TOKEN | TOKENS | TRANSFER | TRIGGER | TRIGGERS | TTL | TYPE | UNSET | UP
      | UPSERT | URLS | USER | USING | VALUES | VARIABLES | VERBOSE | VERSION | VIEW | WHEN | WHERE | WITH | WITHOUT | ZONE
    ;
